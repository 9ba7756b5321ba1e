// A button that copies a text. On plain http other than localhost, browsers offer no clipboard: the button is then omitted.
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';

/**
 * `what`: what is copied, for screen readers. `failed`: called instead of showing an error when the browser refuses to copy.
 *
 * @param {{ text: string, what: string, failed?: () => void }} props
 */
export function Copy({ text, what, failed }) {
  const [copied, setCopied] = useState(false);
  const announce = useAnnounce();
  if (!navigator.clipboard) return null;
  const refused = () =>
    announce('The browser does not let this page copy: select the text, and copy it yourself.', 'wait');
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(true), failed ?? refused);
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
