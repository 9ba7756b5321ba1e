// Nobody is sent to another site without being shown which one: an MCP server may have chosen it.
import { html } from '/console/html.js';
import { Dialog } from '/console/shell/dialog.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ connection: { label: string, platform: string }, url: string, onClose: () => void }} props */
export function Leave({ connection: { label, platform }, url, onClose }) {
  // Of a name in other scripts this is the form in ASCII, which no other name looks like.
  const { host } = new URL(url);
  return html`<${Dialog} title="Continue to another site?" onClose=${onClose} onSubmit=${() => location.assign(url)}>
    <p>To connect <strong class="theirs">${visibleLine(label)}</strong> you sign in and consent at
    <strong class="theirs host">${visibleLine(host)}</strong>. Continue only if that is who runs
    <code class="theirs">${visibleLine(platform)}</code>, or whom it uses to sign people in.</p>
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="leave">Continue to ${visibleLine(host)}</button>
    </div>
  <//>`;
}
