// A line for a terminal, and a button that copies it.
import { html, useRef, useState } from '/console/html.js';

/** @param {{ text: string }} props */
export function Command({ text }) {
  const line = useRef(/** @type {HTMLElement | null} */ (null));
  const [copied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      // Who may not be given it by a button finds it selected.
      () => line.current && getSelection()?.selectAllChildren(line.current),
    );
  // On plain http, other than on localhost, browsers give pages no clipboard.
  return html`<div class="command">
    <pre ref=${line}>${text}</pre>
    ${navigator.clipboard && html`<button type="button" class="compact" aria-live="polite" onClick=${copy}>${copied ? 'Copied' : 'Copy'}</button>`}
  </div>`;
}
