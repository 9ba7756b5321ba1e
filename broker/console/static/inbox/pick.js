import { html, useLayoutEffect, useRef } from '/console/html.js';

/**
 * The checkbox that selects an entry, or a group of them. `pick(on, reach)`: `reach` selects the range up to it, as with Shift.
 *
 * @param {{
 *   label: string, on: boolean, some?: boolean, disabled?: boolean, pick: (on: boolean, reach: boolean) => void,
 * }} props
 */
export function Pick({ label, on, some = false, disabled = false, pick }) {
  const box = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    if (box.current) box.current.indeterminate = some && !on;
  }, [some, on]);
  const clicked = (/** @type {MouseEvent & { currentTarget: HTMLInputElement }} */ { currentTarget, shiftKey }) =>
    pick(currentTarget.checked, shiftKey);
  return html`<label class="pick"><input type="checkbox" ref=${box} aria-label=${label} checked=${on} disabled=${disabled} onClick=${clicked} /></label>`;
}
