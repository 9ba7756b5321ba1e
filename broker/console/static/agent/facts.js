// The facts of an agent: its owner, policy, key, and recent calls.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */

import { KeyDialog } from '/console/agent/key-dialog.js';
import { LabelsDialog } from '/console/agent/labels-dialog.js';
import { PolicyDialog } from '/console/agent/policy-dialog.js';
import { WorkloadDialog } from '/console/agent/workload-dialog.js';
import { callsInWords } from '/console/agents/status-labels.js';
import { html, useState } from '/console/html.js';
import { AgentLabels, pageOf } from '/console/shell/agent-name.js';
import { Copy } from '/console/shell/copy.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/** @type {Record<NonNullable<WholeAgent['agent_type']>, string>} */
const KINDS = {
  key: 'A program with its own key',
  child: 'A child of another agent',
  mcp_client: 'An MCP client that connected over /mcp',
};

/** @param {{ agent: WholeAgent, may: boolean, changed: () => void }} props */
export function Facts({ agent, may, changed }) {
  const [asking, ask] = useState(/** @type {'policy' | 'key' | 'labels' | 'workload' | undefined} */ (undefined));
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
    ['Last 24 hours', callsInWords(activity)],
  ];
  return html`
    <dl class="facts sheet part-like">
    ${facts.map(([title, value]) => value && html`<dt>${title}</dt><dd class="theirs">${value}${title === 'Policy' && mayPolicy && html` <button type="button" class="compact copy" id="change-policy" onClick=${() => ask('policy')}>Change…</button>`}${title === 'Labels' && may && html` <button type="button" class="compact copy" id="change-labels" onClick=${() => ask('labels')}>Change…</button>`}${title === 'Key' && mayKey && html` <button type="button" class="compact copy" id="new-key" onClick=${() => ask('key')}>New key…</button>`}${title === 'Workload' && mayKey && html` <button type="button" class="compact copy" id="change-workload" onClick=${() => ask('workload')}>Change…</button>`}</dd>`)}
  </dl>
    ${asking === 'policy' && html`<${PolicyDialog} agent=${agent} onClose=${() => ask(undefined)} onDone=${changed} />`}
    ${asking === 'labels' && html`<${LabelsDialog} agent=${agent} onClose=${() => ask(undefined)} onDone=${changed} />`}
    ${asking === 'workload' && html`<${WorkloadDialog} agent=${agent} onClose=${() => ask(undefined)} onDone=${changed} />`}
    ${asking === 'key' && html`<${KeyDialog} agent=${agent} onClose=${() => ask(undefined)} onDone=${changed} />`}
  `;
}

/** @param {{ at: string }} props */
export const Day = ({ at }) =>
  html`<time datetime=${at} title=${exactly(at)}>${new Date(at).toLocaleDateString(undefined, { dateStyle: 'medium' })}</time>`;
