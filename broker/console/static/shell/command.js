// A command line, and a button that copies it.
import { html, useRef } from '/console/html.js';
import { Copy } from '/console/shell/copy.js';

/** @param {{ text: string }} props */
export function Command({ text }) {
  const line = useRef(/** @type {HTMLElement | null} */ (null));
  // Selects the text when the browser refuses to copy it.
  const select = () => line.current && getSelection()?.selectAllChildren(line.current);
  return html`<div class="command">
    <pre ref=${line}>${text}</pre>
    <${Copy} text=${text} what="the command" failed=${select} />
  </div>`;
}
