// Lists the invisible and bidirectional characters in a field's text, beside the field, which shows the text unchanged.
import { html } from '/console/html.js';
import { visible } from '/console/visible.js';

const MAX = 200;

/** @param {{ text: string }} props */
export function Unseen({ text }) {
  const shown = visible(text);
  if (shown === text) return null;
  const at = Math.max(0, shown.indexOf('⟦U+') - MAX / 2);
  return html`<p class="wrong unseen-characters">It contains invisible characters, or characters that change the direction of text: <code class="theirs">${at > 0 && '…'}${shown.slice(at, at + MAX)}${at + MAX < shown.length && '…'}</code></p>`;
}
