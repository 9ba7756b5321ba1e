// Assigns an agent's policy.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';
import { Question } from '/console/shell/question.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

/** @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
export function PolicyDialog({ agent, onClose, onDone }) {
  const policies = useLoaded('/owner/policies', 60_000).answer?.policies ?? [];
  const [chosen, choose] = useState(agent.policy_id ?? '');
  const name = visibleLine(agent.name);
  const policy = policies.find(({ id }) => id === chosen);
  const isOther = policy !== undefined && chosen !== agent.policy_id;
  const save = async () => {
    if (!isOther) return undefined;
    await ask('POST', /** @type {const} */ (`/owner/agents/${agent.agent_id}/policy`), { policy: chosen });
    onDone();
    return `${name} is under the policy ${visibleLine(policy.name)}.`;
  };
  return html`<${Question} title=${`Policy of ${name}`} verb="Save" id="save-policy" disabled=${!isOther} work=${save} onClose=${onClose}>
    <div class="field">
      <label for="policy">Under which policy</label>
      <select id="policy" onChange=${valueTo(choose)}>
        ${agent.policy_id === null && html`<option value="">None</option>`}
        ${policies.map(({ id, name: words }) => html`<option key=${id} value=${id} selected=${id === chosen}>${visibleLine(words)}</option>`)}
      </select>
    </div>
    <p class="small" role="status">${isOther ? `From its next call on the rules of “${visibleLine(policy.name)}” apply${agent.policy_name ? ` instead of those of “${visibleLine(agent.policy_name)}”` : ''}, to its children, too. What it is granted stays.` : 'Nothing would change.'}</p>
  <//>`;
}
