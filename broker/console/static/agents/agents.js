// The organisation's agents: filter, order, and stop them.
/** @typedef {import('/console/agents/filter.js').Filters} Filters */
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/status-labels.js').Verb} Verb */
import { Filter, NAMES, queryOf } from '/console/agents/filter.js';
import { MoveDialog } from '/console/agents/move-dialog.js';
import { badgeOf, describeCalls, MOVE, MOVES, waitingOf } from '/console/agents/status-labels.js';
import { StatusReason } from '/console/agents/status-reason.js';
import { html, useState } from '/console/html.js';
import { AgentLabels, AgentName } from '/console/shell/agent-name.js';
import { Command } from '/console/shell/command.js';
import { applyFilters, filtersIn, isFiltered } from '/console/shell/filters.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { notShown, useAgentPages } from '/console/shell/use-pages.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 10_000;
const SLOW_INTERVAL_MS = 60_000;
/** Number of rows drawn first, and added for each press of the button. */
const PAGE = 50;

/** @param {{ place: URL }} props */
export function AgentsPage({ place }) {
  const filters = filtersIn(place, NAMES);
  const { pages, error, stale, load } = useAgentPages(`/owner/agents?${queryOf(filters, PAGE)}`, INTERVAL_MS);
  const policies = useLoaded('/owner/policies', SLOW_INTERVAL_MS).answer?.policies ?? [];
  const owners = useLoaded('/owner/owners', SLOW_INTERVAL_MS).answer?.owners ?? [];
  const labels = useLoaded('/owner/agent-labels', SLOW_INTERVAL_MS).answer?.labels ?? [];
  const owner = useOwner();
  const [moving, setMoving] = useState(/** @type {{ agent: Agent, verb: Verb } | undefined} */ (undefined));
  const names = {
    policies: new Map(policies.map(({ id, name }) => [id, name])),
    owners: new Map(owners.map(({ id, email }) => [id, email])),
    labels: new Map(labels.map(({ label, agents }) => [label, `${label} (${agents})`])),
  };
  const { sort: _sort, ...narrowing } = filters;
  const narrowed = isFiltered(narrowing);
  const none = pages?.agents.length === 0;
  const next = pages?.next;
  return html`
    <div class="page-head"><h1>Agents</h1>
      <div class="buttons"><p class="small"><${Link} to="/console/clients" id="to-clients">MCP clients<//> · <${Link} to="/console/reports" id="to-reports">Reports<//></p>${mayChange(owner) && html`<${Link} to="/console/agents/new" class="button primary" id="new-agent">New agent<//>`}</div></div>
    ${error && html`<${Failed} error=${error} again=${() => load(undefined)} />`}
    ${!pages && !error && html`<${Loading} />`}
    ${none && !narrowed && !stale && html`<${NoAgents} />`}
    ${pages && (!none || narrowed) && html`<${Filter} filters=${filters} total=${stale ? undefined : pages.total} ...${names} />`}
    ${none && narrowed && html`<p class="quiet" id="none-fits">No agent fits this filter. <${Link} to="/console/agents">Show all<//></p>`}
    ${
      pages &&
      !none &&
      html`<table class="sheet agents" id="agents" aria-busy=${stale}>
        <${TableHead} filters=${filters} />
        <tbody>
          ${pages.agents.map(
            (agent) =>
              html`<${AgentRow} key=${agent.agent_id} agent=${agent} names=${names} may=${mayChange(owner)} move=${(/** @type {Verb} */ verb) => setMoving({ agent, verb })} />`,
          )}
        </tbody>
      </table>`
    }
    ${pages && next && !stale && html`<p class="more"><button type="button" id="show-more" onClick=${() => load(next)}>Show more (${notShown(pages)} not shown)</button></p>`}
    ${pages && !none && !mayChange(owner) && html`<p class="quiet small">Your role is ${owner.role}: an admin can stop agents.</p>`}
    ${moving && html`<${MoveDialog} ...${moving} onClose=${() => setMoving(undefined)} onMoved=${() => load(undefined)} />`}
  `;
}

const NoAgents = () => html`
  <${Empty} title="There are no agents yet">
    <p>An agent acts through this broker with its own key. Say what it may do, and get the command that makes it, for Claude, Cursor, VS Code, Codex or any program:</p>
    <p><${Link} to="/console/agents/new" class="button primary">New agent<//></p>
    <p class="quiet">Or make one on the machine of the broker:</p>
    <${Command} text="npx agent-broker agent create my-agent" />
  <//>
`;

/** Names of policies and owners by id. @typedef {{ policies: ReadonlyMap<string, string>, owners: ReadonlyMap<string, string> }} Names */

/**
 * `names`: names of policies and owners, as far as loaded. `may`: whether the viewer may stop the agent. `move(verb)` opens the dialog for the
 * verb.
 *
 * @param {{ agent: Agent, names: Names, may: boolean, move: (verb: Verb) => void }} props
 */
function AgentRow({ agent, names, may, move }) {
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
      <td data-label="Last 24 hours">${activity && describeCalls(activity)}</td>
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

// The heads of the table, which set its order; on a phone a select replaces them.
/** `first`: the order at the first click, newest or latest first where that is what people look for. */
const HEADS = [
  { key: 'name', words: 'Agent', first: 'name' },
  { key: 'owner', words: 'Owner', first: 'owner' },
  { key: 'policy', words: 'Policy', first: 'policy' },
  { key: 'status', words: 'State', first: 'status' },
  { key: 'last_call', words: 'Last call', first: '-last_call' },
  { words: 'Last 24 hours', column: 'day' },
  { words: 'Waits', column: 'waits' },
];

/** @param {{ filters: Filters }} props */
function TableHead({ filters }) {
  const sort = filters.sort || 'name';
  return html`<thead>
    <tr>
      ${HEADS.map(({ key, words, column, first = '' }) => {
        if (!key) return html`<th scope="col" class=${column}>${words}</th>`;
        const is = sort.replace('-', '') === key;
        const other = sort.startsWith('-') ? key : `-${key}`;
        return html`<th scope="col" class=${key} aria-sort=${is ? (sort.startsWith('-') ? 'descending' : 'ascending') : 'none'}>
          <button type="button" class="plain sorter" id=${`sort-${key}`} onClick=${() => applyFilters('/console/agents', { ...filters, sort: is ? other : first })}>
            ${words}<span class="direction" aria-hidden="true">${is ? (sort.startsWith('-') ? '↓' : '↑') : ''}</span>
          </button>
        </th>`;
      })}
      <th scope="col" class="actions"><span class="unseen">Actions</span></th>
    </tr>
  </thead>`;
}
