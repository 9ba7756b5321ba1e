/** @typedef {import('../../answers.ts').StaticKey} StaticKey */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** The dialog that revokes a static key. @param {{ agent: WholeAgent, one: StaticKey, onClose: () => void, onDone: () => void }} props */
export function EndKey({ agent, one, onClose, onDone }) {
  const label = visibleLine(one.label);
  const end = async () => {
    await ask('DELETE', /** @type {const} */ (`/owner/agents/${agent.agent_id}/static-keys/${one.id}`));
    onDone();
    return `The key ${label} is revoked.`;
  };
  return html`<${Question} title=${`Revoke the key ${label}?`} verb="Revoke" kind="danger solid" id="end-key" work=${end} onClose=${onClose}>
    <p>Requests with this key are refused permanently, from the next one on. The agent and its other keys stay.</p>
  <//>`;
}
