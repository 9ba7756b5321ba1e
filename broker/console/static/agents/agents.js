// The organisation's agents: filter, order, and stop them.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/status-labels.js').Verb} Verb */
import { AgentRow } from '/console/agents/agent-row.js';
import { Filter, NAMES, queryOf } from '/console/agents/filter.js';
import { MoveDialog } from '/console/agents/move-dialog.js';
import { TableHead } from '/console/agents/table-head.js';
import { html, useState } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { filtersIn, isFiltered } from '/console/shell/filters.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { notShown, useAgentPages } from '/console/shell/use-pages.js';

const EVERY_MS = 10_000;
const SELDOM_MS = 60_000;
/** Number of rows drawn first, and added for each press of the button. */
const PAGE = 50;

/** @param {{ place: URL }} props */
export function AgentsPage({ place }) {
  const filters = filtersIn(place, NAMES);
  const { pages, error, stale, load } = useAgentPages(`/owner/agents?${queryOf(filters, PAGE)}`, EVERY_MS);
  const policies = useLoaded('/owner/policies', SELDOM_MS).answer?.policies ?? [];
  const owners = useLoaded('/owner/owners', SELDOM_MS).answer?.owners ?? [];
  const labels = useLoaded('/owner/agent-labels', SELDOM_MS).answer?.labels ?? [];
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
