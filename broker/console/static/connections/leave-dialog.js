// Shows the host before the browser navigates to another site: an MCP server may have chosen the site.
import { html } from '/console/html.js';
import { Dialog } from '/console/shell/dialog.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ connection: { label: string, platform: string }, url: string, onClose: () => void }} props */
export function LeaveDialog({ connection: { label, platform }, url, onClose }) {
  // An internationalised host name is shown in its ASCII form (punycode), which cannot imitate another name.
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
