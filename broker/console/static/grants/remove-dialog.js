// The dialog that removes a grant.
/** @typedef {import('../../answers.ts').OwnedGrant} OwnedGrant */
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html } from '/console/html.js';
import { Question } from '/console/shell/question.js';
import { visibleLine } from '/console/visible.js';

/** `others`: whether the agent has further grants on the platform. @param {{ agent: WholeAgent, grant: OwnedGrant, others: boolean, onClose: () => void, onDone: () => void }} props */
export function RemoveDialog({ agent, grant, others, onClose, onDone }) {
  const name = visibleLine(agent.name);
  const { platform, connection, scopes } = grant;
  // A grant on the default connection cannot be addressed separately from the platform's other grants.
  const all = others && !connection?.label;
  const remove = async () => {
    const query = connection?.label ? `?connection=${encodeURIComponent(connection.label)}` : '';
    await ask('DELETE', /** @type {const} */ (`/owner/agents/${agent.agent_id}/grants/${platform}${query}`));
    onDone();
    return `The grant of ${name} on ${visibleLine(platform)} is removed.`;
  };
  return html`<${Question} title=${`Remove the grant on ${visibleLine(platform)}?`} verb="Remove" kind="danger solid" id="remove-grant" work=${remove} onClose=${onClose}>
    <p>${name} loses ${all ? 'all that it is granted there, on every connection' : html`${scopes.length === 1 ? 'the scope' : `${scopes.length} scopes:`} ${scopes.map((scope, at) => html`${at > 0 && ', '}<code class="theirs">${visibleLine(scope)}</code>`)}`}, from its next call on. So do its children. A held call with it is refused when it is approved.</p>
  <//>`;
}
