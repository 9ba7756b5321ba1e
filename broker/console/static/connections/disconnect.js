// Asks for confirmation before a connection is disconnected.
/** @typedef {import('../../answers.ts').Connection} Connection */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ connection: Connection, onClose: () => void, onDone: () => void }} props */
export function Disconnect({ connection: { id, label }, onClose, onDone }) {
  const name = visibleLine(label);
  const disconnect = async () => {
    const { revoked, detail } = await ask('POST', `/owner/connections/${id}/oauth/disconnect`, {});
    return revoked ? `“${name}” is disconnected.` : [detail, 'wait'];
  };
  return html`<${Question} title="Disconnect this?" verb="Disconnect" kind="danger solid" id="disconnect" work=${disconnect} onClose=${onClose} onDone=${onDone}>
    <p><strong class="theirs">${name}</strong> is no longer used, from the next call on. The broker forgets its tokens and has the
    platform revoke them.</p>
    <p class="quiet small">Grants stay. After it is connected again, the same agents can call.</p>
  <//>`;
}
