// Moves the focus in the list, and to the next entry after a decision.
import { useLayoutEffect, useRef, useState } from '/console/html.js';
import { openerOf } from '/console/inbox/card.js';

/** Returns the key of the entry, or the id of the group, that has the focus; undefined when none has. */
export function keyAtFocus() {
  const found = /** @type {HTMLElement | null | undefined} */ (
    document.activeElement?.closest('[data-entry], [data-slot]')
  );
  return found?.dataset.entry ?? found?.dataset.slot;
}

/**
 * Focuses the entry with this key, or the group with this id, and scrolls its head into view; without a key, or when it is not drawn, focuses the
 * heading.
 *
 * @param {string | undefined} key
 */
export function focusOn(key) {
  const target = document.getElementById(key ? openerOf(key) : 'inbox') ?? document.getElementById('inbox');
  target?.focus({ preventScroll: true });
  (target?.closest('.card-head') ?? target)?.scrollIntoView({ block: 'nearest' });
}

/**
 * Returns `later(key)`, which sets the focus after the next render. Before it, the layout would still include the content that closes above.
 *
 * @returns {(key: string | undefined) => void}
 */
export function useFocusLater() {
  const wanted = useRef(/** @type {{ key: string | undefined } | undefined} */ (undefined));
  const [, draw] = useState({});
  useLayoutEffect(() => {
    if (!wanted.current) return;
    const { key } = wanted.current;
    wanted.current = undefined;
    focusOn(key);
  });
  return (key) => {
    wanted.current = { key };
    draw({});
  };
}
