/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/status-labels.js').Verb} Verb */
/** Names of policies and owners by id. @typedef {{ policies: ReadonlyMap<string, string>, owners: ReadonlyMap<string, string> }} Names */

import { badgeOf, callsInWords, MOVE, MOVES, waitingOf } from '/console/agents/status-labels.js';
import { StatusReason } from '/console/agents/status-reason.js';
import { html } from '/console/html.js';
import { AgentLabels, AgentName } from '/console/shell/agent-name.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/**
 * `names`: names of policies and owners, as far as loaded. `may`: whether the viewer may stop the agent. `move(verb)` opens the dialog for the
 * verb.
 *
 * @param {{ agent: Agent, names: Names, may: boolean, move: (verb: Verb) => void }} props
 */
export function AgentRow({ agent, names, may, move }) {
  const { name, agent_id, status, contained, parent_agent_id, activity } = agent;
  const { kind, words } = badgeOf(agent);
  const owner = names.owners.get(agent.owner_id);
  const waiting = waitingOf(agent);
  // The everyday action; the others are on the agent's page.
  const verb = contained === 'expired' ? undefined : MOVES[status].find((one) => one !== 'revoke');
  return html`
    <tr class="row" data-agent=${agent_id} data-status=${status} data-contained=${contained}>
      <th scope="row" class="what">
        <p class="name"><strong><${AgentName} agent=${agent} /></strong></p>
        <p class="small quiet">
          <code>${agent_id}</code>${agent.agent_type === 'mcp_client' && html` · <${Link} to=${`/console/clients?agent=${agent_id}`}>MCP client<span class="unseen">s that act as ${name}</span><//>`}
        </p>
        ${parent_agent_id && html`<p class="small quiet">child of <code>${parent_agent_id}</code></p>`}
        <${AgentLabels} labels=${agent.labels} />
        ${contained !== 'all_stopped' && html`<${StatusReason} agent=${agent} />`}
      </th>
      <td data-label="Owner" class="owner theirs" title=${owner}><${Address} text=${visibleLine(owner ?? '…')} /></td>
      <td data-label="Policy"><${Policy} agent=${agent} names=${names} /></td>
      <td data-label="State"><span class="badge" data-kind=${kind}>${words}</span></td>
      <td data-label="Last call">${activity?.last_call_at ? html`<${Ago} at=${activity.last_call_at} />` : html`<span class="quiet">never</span>`}</td>
      <td data-label="Last 24 hours">${activity && callsInWords(activity)}</td>
      <td data-label="Waits">${waiting > 0 ? html`<${Link} to=${`/console?agent=${agent_id}`}>${waiting}<span class="unseen"> of ${name} wait for a decision</span><//>` : html`<span class="quiet">–</span>`}</td>
      <td class="actions">
        ${
          may &&
          verb &&
          html`<button type="button" class=${`compact ${verb}`} onClick=${() => move(verb)}>
            ${MOVE[verb].name}<span class="unseen"> ${name}</span>
          </button>`
        }
      </td>
    </tr>
  `;
}

/** An e-mail address, which may wrap before its `@` rather than in a word. @param {{ text: string }} props */
function Address({ text }) {
  const at = text.lastIndexOf('@');
  return at > 0 ? html`${text.slice(0, at)}<wbr />${text.slice(at)}` : text;
}

/** @param {{ agent: Agent, names: Names }} props */
function Policy({ agent: { policy_id, parent_agent_id }, names: { policies } }) {
  if (parent_agent_id) return html`<span class="quiet">its parent’s</span>`;
  if (policy_id === null) return html`<span class="why">none: every call is denied</span>`;
  return html`<span class="theirs">${visibleLine(policies.get(policy_id) ?? '…')}</span>`;
}
