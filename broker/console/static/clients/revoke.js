// Asks for confirmation before a client's access is revoked.
/** @typedef {import('../../answers.ts').McpAuthorisation} McpAuthorisation */
import { asError, ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { useAnnounce } from '/console/shell/announce.js';
import { Dialog } from '/console/shell/dialog.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ one: McpAuthorisation, onClose: () => void, onDone: () => void }} props */
export function Revoke({ one: { id, client, agent }, onClose, onDone }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const announce = useAnnounce();
  const name = visibleLine(client.name);
  const revoke = async () => {
    if (busy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await ask('DELETE', `/owner/mcp-authorisations/${id}`);
      announce(`The access of ${name} is revoked.`, 'good');
      onClose();
    } catch (error) {
      setProblem(asError(error));
      setBusy(false);
    }
    onDone();
  };
  return html`<${Dialog} title="Revoke this access?" onClose=${onClose} onSubmit=${revoke}>
    <p><strong class="theirs">${name}</strong> is refused from its next request on. To get access again it has to ask you.</p>
    <p class="quiet small">Its agent <span class="theirs">${visibleLine(agent.name)}</span> stays, with what it may do; other clients that act as it keep their access.</p>
    ${problem && html`<p class="notice" data-kind="bad" role="alert">${problem.message}</p>`}
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="danger solid" id="revoke" disabled=${busy}>Revoke access</button>
    </div>
  <//>`;
}
