// Keyboard shortcuts, active while no text field has the focus and no dialog is open.
import { useEffect, useRef } from '/console/html.js';

const WRITING = 'input:not([type="checkbox"], [type="radio"]), textarea, select, [contenteditable]';

/**
 * `keys`: the action of each key, by its name (`j`, `ArrowDown`, `?`). A key that is held down acts once.
 *
 * @param {Readonly<Record<string, () => void>>} keys
 */
export function useKeys(keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ event) => {
      if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      if ((event.target instanceof Element && event.target.closest(WRITING)) || document.querySelector('dialog[open]'))
        return;
      const act = latest.current[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}
