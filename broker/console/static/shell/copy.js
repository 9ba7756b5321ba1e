// A button that copies a text. On plain http, other than on localhost, browsers give pages no clipboard: then there is none.
import { html, useState } from '/console/html.js';

/**
 * `what`: what is copied, for screen readers. `failed`: called where the browser may not be given it by a button.
 *
 * @param {{ text: string, what: string, failed?: () => void }} props
 */
export function Copy({ text, what, failed }) {
  const [copied, setCopied] = useState(false);
  if (!navigator.clipboard) return null;
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true), failed);
  const words = copied ? 'Copied' : 'Copy';
  return html`<button type="button" class="compact copy" aria-live="polite" aria-label=${`${words} ${what}`} onClick=${copy}>${words}</button>`;
}

/**
 * An id, and a button that copies it.
 *
 * @param {{ id: string, what: string }} props
 */
export const Id = ({ id, what }) =>
  html`<span class="id"><code class="theirs">${id}</code> <${Copy} text=${id} what=${what} /></span>`;
