// Where the focus is in the list, and where it goes when something was decided.
import { useLayoutEffect, useRef, useState } from '/console/html.js';
import { openerOf } from '/console/inbox/card.js';

/** The key of the entry, or the id of the group, that has the focus, if one has. */
export function keyAtFocus() {
  const found = /** @type {HTMLElement | null | undefined} */ (
    document.activeElement?.closest('[data-entry], [data-slot]')
  );
  return found?.dataset.entry ?? found?.dataset.slot;
}

/**
 * Focuses the entry with this key, or the group with this id, and brings its head into the window; without a key, or where it is not drawn, the heading.
 *
 * @param {string | undefined} key
 */
export function focusOn(key) {
  const target = document.getElementById(key ? openerOf(key) : 'inbox') ?? document.getElementById('inbox');
  target?.focus({ preventScroll: true });
  (target?.closest('.card-head') ?? target)?.scrollIntoView({ block: 'nearest' });
}

/**
 * Answers `later(key)`: focuses once what changes now was drawn. Before that the height of what closes above would be wrong.
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
