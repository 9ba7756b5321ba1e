// Asks for confirmation before a client's access is revoked.
/** @typedef {import('../../answers.ts').McpAuthorisation} McpAuthorisation */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ one: McpAuthorisation, onClose: () => void, onDone: () => void }} props */
export function Revoke({ one: { id, client, agent }, onClose, onDone }) {
  const name = visibleLine(client.name);
  const revoke = async () => {
    await ask('DELETE', `/owner/mcp-authorisations/${id}`);
    return `The access of ${name} is revoked.`;
  };
  return html`<${Question} title="Revoke this access?" verb="Revoke access" kind="danger solid" id="revoke" work=${revoke} onClose=${onClose} onDone=${onDone}>
    <p><strong class="theirs">${name}</strong> is refused from its next request on. To get access again it has to ask you.</p>
    <p class="quiet small">Its agent <span class="theirs">${visibleLine(agent.name)}</span> stays, with what it may do; other clients that act as it keep their access.</p>
  <//>`;
}
