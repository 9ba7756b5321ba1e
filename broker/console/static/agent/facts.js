// The facts of an agent: its owner, policy, key, and recent calls.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
import { WorkloadDialog } from '/console/agent/workload-dialog.js';
import { describeCalls } from '/console/agents/status-labels.js';
import { ask } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { bindLine } from '/console/new-agent/lines.js';
import { AgentLabels, pageOf } from '/console/shell/agent-name.js';
import { Command } from '/console/shell/command.js';
import { Copy } from '/console/shell/copy.js';
import { Dialog } from '/console/shell/dialog.js';
import { valueTo } from '/console/shell/fields.js';
import { useLoaded } from '/console/shell/loaded.js';
import { Question } from '/console/shell/question.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visibleLine } from '/console/visible.js';

/** @type {Record<NonNullable<WholeAgent['agent_type']>, string>} */
const KINDS = {
  key: 'A program with its own key',
  child: 'A child of another agent',
  mcp_client: 'An MCP client that connected over /mcp',
};

/** @typedef {{ bootstrap_token: string, expires_at: string, bind_url: string }} Token */

/** @param {{ agent: WholeAgent, may: boolean, changed: () => void }} props */
export function Facts({ agent, may, changed }) {
  const [asking, ask] = useState(/** @type {'policy' | 'key' | 'labels' | 'workload' | undefined} */ (undefined));
  // Here and not in the dialog that asks for it: an answer that arrives when that dialog was closed has the only copy of the token.
  const [token, setToken] = useState(/** @type {Token | undefined} */ (undefined));
  const mayPolicy = may && !agent.parent_agent_id && agent.status !== 'revoked';
  // The broker issues the tokens of a child agent and of an MCP client.
  const bringsKey = agent.agent_type === 'key' || agent.agent_type === null;
  const mayKey = may && bringsKey && agent.status !== 'revoked';
  const { agent_type, parent_agent_id, owner_email, policy_name, key_fingerprint, key_since, activity } = agent;
  const facts = [
    ['Owner', owner_email && visibleLine(owner_email)],
    [
      'Policy',
      parent_agent_id
        ? 'That of its parent'
        : (policy_name && visibleLine(policy_name)) || html`<span class="why">None: every call is denied</span>`,
    ],
    [
      'Labels',
      !parent_agent_id && (agent.labels.length > 0 ? html`<${AgentLabels} labels=${agent.labels} />` : may && 'None'),
    ],
    ['Parent', parent_agent_id && html`<${Link} to=${pageOf(parent_agent_id)}><code>${parent_agent_id}</code><//>`],
    ['Kind', agent_type && KINDS[agent_type]],
    [
      'Key',
      key_fingerprint && key_since
        ? html`<code>${key_fingerprint}</code> <${Copy} text=${key_fingerprint} what="the fingerprint of the key" /> <span class="quiet">since <${Day} at=${key_since} /></span>`
        : bringsKey && 'None',
    ],
    [
      'Workload',
      agent.workload
        ? html`${visibleLine(agent.workload.subject)} <span class="quiet">of ${visibleLine(agent.workload.issuer)}, ${agent.workload.last_used_at ? html`used <${Ago} at=${agent.workload.last_used_at} />` : 'never used'}</span>`
        : mayKey && 'None',
    ],
    ['Created', html`<${Day} at=${agent.created_at} />`],
    ['Ends', agent.expires_at && exactly(agent.expires_at)],
    ['Last call', activity.last_call_at ? html`<${Ago} at=${activity.last_call_at} />` : 'It has made none yet'],
    ['Last 24 hours', describeCalls(activity)],
  ];
  return html`
    <dl class="facts sheet part-like">
    ${facts.map(([title, value]) => value && html`<dt>${title}</dt><dd class="theirs">${value}${title === 'Policy' && mayPolicy && html` <button type="button" class="compact copy" id="change-policy" onClick=${() => ask('policy')}>Change…</button>`}${title === 'Labels' && may && html` <button type="button" class="compact copy" id="change-labels" onClick=${() => ask('labels')}>Change…</button>`}${title === 'Key' && mayKey && html` <button type="button" class="compact copy" id="new-key" onClick=${() => ask('key')}>New key…</button>`}${title === 'Workload' && mayKey && html` <button type="button" class="compact copy" id="change-workload" onClick=${() => ask('workload')}>Change…</button>`}</dd>`)}
  </dl>
    ${asking === 'policy' && html`<${PolicyDialog} agent=${agent} onClose=${() => ask(undefined)} onDone=${changed} />`}
    ${asking === 'labels' && html`<${LabelsDialog} agent=${agent} onClose=${() => ask(undefined)} onDone=${changed} />`}
    ${asking === 'workload' && html`<${WorkloadDialog} agent=${agent} onClose=${() => ask(undefined)} onDone=${changed} />`}
    ${asking === 'key' && html`<${KeyDialog} agent=${agent} onClose=${() => ask(undefined)} onMade=${setToken} onDone=${changed} />`}
    ${token && html`<${MadeToken} agent=${agent} token=${token} onClose=${() => setToken(undefined)} />`}
  `;
}

/** @param {{ at: string }} props */
export const Day = ({ at }) =>
  html`<time datetime=${at} title=${exactly(at)}>${new Date(at).toLocaleDateString(undefined, { dateStyle: 'medium' })}</time>`;

/** Shows the command with a bootstrap token, once. @param {{ agent: WholeAgent, token: Token, onClose: () => void }} props */
function MadeToken({ agent, token, onClose }) {
  const name = visibleLine(agent.name);
  return html`<${Dialog} title=${`A new key for ${name}`} onClose=${onClose}>
    <p>Run this command where ${name} runs, before ${exactly(token.expires_at)}. It creates the key there and writes the profile. The command is shown only once.</p>
    <${Command} text=${`npx ${bindLine({ name: agent.name, url: new URL(token.bind_url).origin, token: token.bootstrap_token })}`} />
    <p class="small quiet">Or send the token <code>abt_…</code> in it and a public key to <code class="theirs">${token.bind_url}</code>.</p>
    <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Done</button></div>
  <//>`;
}

/**
 * Issues a bootstrap token with which an agent registers another key: how its key is replaced. `onMade` is also called when the dialog was closed
 * meanwhile.
 *
 * @param {{ agent: WholeAgent, onClose: () => void, onMade: (token: Token) => void, onDone: () => void }} props
 */
function KeyDialog({ agent, onClose, onMade, onDone }) {
  const { busy, problem, gone, run } = useDoing();
  const name = visibleLine(agent.name);
  const has = agent.key_fingerprint !== null;
  const make = () =>
    run(async () => {
      const path = /** @type {const} */ (`/owner/agents/${agent.agent_id}/bootstrap-token`);
      onMade(await ask('POST', path, has ? { rotate: true } : {}));
      if (!gone.current) onClose();
      onDone();
    });
  return html`<${Dialog} title=${`A new key for ${name}?`} onClose=${onClose} onSubmit=${make}>
    <p>You get a token with which the agent brings a new key. It can be used once, within a day. ${has ? 'The current key works until then; after that the key and the children that the agent created with it are refused.' : 'It has no key yet.'} Earlier tokens are no longer accepted.</p>
    <${Problem} problem=${problem} />
    <div class="buttons">
      <button type="button" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" id="make-token" disabled=${busy}>Make a token</button>
    </div>
  <//>`;
}

/** Edits the labels by which agents are filtered and grouped. @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
function LabelsDialog({ agent, onClose, onDone }) {
  const [text, setText] = useState(agent.labels.join(', '));
  const name = visibleLine(agent.name);
  const labels = text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  const save = async () => {
    await ask('POST', /** @type {const} */ (`/owner/agents/${agent.agent_id}/labels`), { labels });
    onDone();
    return `The labels of ${name} are changed.`;
  };
  return html`<${Question} title=${`Labels of ${name}`} verb="Save" id="save-labels" disabled=${text === agent.labels.join(', ')} work=${save} onClose=${onClose}>
    <div class="field">
      <label for="labels">Labels, separated by commas</label>
      <input id="labels" value=${text} maxlength="500" autocomplete="off" autocapitalize="none" spellcheck=${false} placeholder="prod, team:billing" aria-describedby="labels-hint" onInput=${valueTo(setText)} />
      <p class="hint" id="labels-hint">At most 10, of letters, digits, spaces and . _ : / -. Agents are found by them, and conditions of policies may read them (<code>'prod' in agent.labels</code>), from its next call on.</p>
    </div>
  <//>`;
}

/** Assigns an agent's policy. @param {{ agent: WholeAgent, onClose: () => void, onDone: () => void }} props */
function PolicyDialog({ agent, onClose, onDone }) {
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
