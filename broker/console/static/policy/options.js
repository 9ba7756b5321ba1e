// Suggestions below a field, chosen by mouse or with the arrow keys and Enter (WAI-ARIA combobox).
/** @typedef {import('/console/policy/known.js').Option} Option */
import { html, useEffect, useRef, useState } from '/console/html.js';
import { visibleLine } from '/console/visible.js';

const SHOWN = 60;

/**
 * The state of a suggestion list. `take(option)` is called with the chosen option. Returns the props of the field and the list.
 *
 * @param {{ id: string, options: readonly Option[], take: (value: string) => void }} given
 */
export function useOptions({ id, options, take }) {
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const shown = options.slice(0, SHOWN);
  const isOpen = open && shown.length > 0;
  const choose = (/** @type {string} */ value) => {
    take(value);
    setAt(-1);
  };
  /** Handles a key press; returns whether the list used it. */
  const pressed = (/** @type {KeyboardEvent} */ event) => {
    const { key } = event;
    const option = shown[at];
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      setOpen(true);
      const next = isOpen ? at + (key === 'ArrowDown' ? 1 : -1) : key === 'ArrowDown' ? 0 : shown.length - 1;
      setAt(Math.max(0, Math.min(shown.length - 1, next)));
    } else if (key === 'Enter' && isOpen && option) choose(option.value);
    else if (key === 'Escape' && isOpen) setOpen(false);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return {
    pressed,
    isOpen,
    at,
    show: (/** @type {boolean} */ is) => {
      setOpen(is);
      setAt(-1);
    },
    active: isOpen && at >= 0 ? `${id}-${at}` : null,
    list: { id: `${id}-list`, of: id, shown, at, choose, more: options.length - shown.length },
  };
}

/** @param {{ id: string, of: string, shown: readonly Option[], at: number, choose: (value: string) => void, more: number, label: string }} props */
export function OptionList({ id, of, shown, at, choose, more, label }) {
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (at >= 0) list.current?.children[at]?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  // Keeps the focus in the field while the pointer is down on the list.
  const stay = (/** @type {Event} */ event) => event.preventDefault();
  return html`
    <ul role="listbox" class="options" id=${id} aria-label=${label} ref=${list} onMouseDown=${stay}>
      ${shown.map(
        (
          { value, words },
          index,
        ) => html`<li role="option" key=${value} id=${`${of}-${index}`} data-value=${value} aria-selected=${index === at} onClick=${() => choose(value)}>
          <span class="theirs option-value">${visibleLine(value)}</span>${words && html`<span class="small quiet theirs">${visibleLine(words)}</span>`}
        </li>`,
      )}
      ${more > 0 && html`<li role="presentation" class="small quiet">${more} more: write to find them.</li>`}
    </ul>
  `;
}
