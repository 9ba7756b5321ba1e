/** @typedef {import('/console/html.js').Children} Children */
import { html, useId, useLayoutEffect, useRef } from '/console/html.js';

/**
 * A modal dialog. Escape and a click beside it close it; the focus then returns to where it was. `onSubmit` also handles Enter. `keeps`: a click
 * beside the dialog does not close it, because the entered text would be lost.
 *
 * @param {{ title: string, keeps?: boolean, onClose: () => void, onSubmit?: () => void, children: Children }} props
 */
export function Dialog({ title, keeps = false, onClose, onSubmit, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const isHere = useRef(true);
  const id = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    isHere.current = true;
    shown?.showModal();
    return () => {
      isHere.current = false;
      shown?.close();
    };
  }, []);
  // The browser fires `close` later, after pending input events: when this dialog is unmounted, the next one may be open, which `onClose` would close.
  const closed = () => {
    if (isHere.current) onClose();
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    onSubmit?.();
  };
  return html`
    <dialog ref=${dialog} aria-labelledby=${id} closedby=${keeps ? 'closerequest' : 'any'} onClose=${closed}>
      <form onSubmit=${submit} class="dialog">
        <h2 id=${id}>${title}</h2>
        ${children}
      </form>
    </dialog>
  `;
}
