// The organisation's agents, and stopping them.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/words.js').Verb} Verb */
import { AgentRow } from '/console/agents/agent-row.js';
import { Filter, fits } from '/console/agents/filter.js';
import { MoveDialog } from '/console/agents/move-dialog.js';
import { html, useState } from '/console/html.js';
import { Command } from '/console/shell/command.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { isSought, soughtIn } from '/console/shell/sought.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 10_000;

const SELDOM_MS = 60_000;
/** From so many on there is something to look for. */
const FILTERED_FROM = 6;
/** So many are drawn at first, and more each time somebody asks. */
const DRAWN = 50;

/** @param {{ place: URL }} props */
export function AgentsPage({ place }) {
  const { answer, error, reload } = useLoaded('/owner/agents', EVERY_MS);
  const policies = useLoaded('/owner/policies', SELDOM_MS).answer?.policies ?? [];
  const owners = useLoaded('/owner/owners', SELDOM_MS).answer?.owners ?? [];
  const owner = useOwner();
  const [moving, setMoving] = useState(/** @type {{ agent: Agent, verb: Verb } | undefined} */ (undefined));
  const [drawn, setDrawn] = useState(DRAWN);
  const sought = soughtIn(place, /** @type {const} */ (['words', 'state']));
  const agents = answer?.agents;
  const names = {
    policies: new Map(policies.map(({ id, name }) => [id, name])),
    owners: new Map(owners.map(({ id, email }) => [id, email])),
  };
  const found = inFamilies(agents ?? []).filter((agent) => fits(agent, sought, names));
  return html`
    <div class="page-head"><h1>Agents</h1>
      <p class="small"><${Link} to="/console/clients" id="to-clients">MCP clients<//> · <${Link} to="/console/reports" id="to-reports">Reports<//></p></div>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!agents && !error && html`<${Loading} />`}
    ${agents?.length === 0 && html`<${NoAgents} />`}
    ${agents && (agents.length >= FILTERED_FROM || isSought(sought)) && html`<${Filter} agents=${agents} sought=${sought} fitting=${found.length} />`}
    ${agents && agents.length > 0 && found.length === 0 && html`<p class="quiet" id="none-fits">No agent fits this filter. <${Link} to="/console/agents">Show all<//></p>`}
    ${
      found.length > 0 &&
      html`<ul role="list" class="sheet rows" id="agents">
        ${found
          .slice(0, drawn)
          .map(
            (agent) =>
              html`<${AgentRow} key=${agent.agent_id} agent=${agent} names=${names} may=${mayChange(owner)} move=${(/** @type {Verb} */ verb) => setMoving({ agent, verb })} />`,
          )}
      </ul>`
    }
    ${found.length > drawn && html`<p class="more"><button type="button" id="show-more" onClick=${() => setDrawn(drawn + DRAWN)}>Show more (${found.length - drawn} not shown)</button></p>`}
    ${agents && agents.length > 0 && !mayChange(owner) && html`<p class="quiet small">Your role is ${owner.role}: an admin can stop agents.</p>`}
    ${moving && html`<${MoveDialog} ...${moving} onClose=${() => setMoving(undefined)} onMoved=${reload} />`}
  `;
}

/**
 * By name, each agent with its children under it; those that are revoked or deleted stand last, with whoever is contained by that.
 *
 * @param {Agent[]} agents
 */
function inFamilies(agents) {
  const stopped = (/** @type {Agent} */ { status }) => Number(status === 'revoked');
  const lastStopped = (/** @type {Agent[]} */ some) =>
    [...some].sort((a, b) => stopped(a) - stopped(b) || a.name.localeCompare(b.name, undefined, { numeric: true }));
  const known = new Set(agents.map(({ agent_id }) => agent_id));
  const eldest = agents.filter(({ parent_agent_id }) => parent_agent_id === null || !known.has(parent_agent_id));
  const childrenOf = (/** @type {Agent} */ agent) =>
    agents.filter(({ parent_agent_id }) => parent_agent_id === agent.agent_id);
  return lastStopped(eldest).flatMap((agent) => [agent, ...lastStopped(childrenOf(agent))]);
}

const NoAgents = () => html`
  <${Empty} title="There are no agents yet">
    <p>An agent acts through this broker with a key of its own. Make one on the machine of the broker:</p>
    <${Command} text="npx agent-broker agent create my-agent" />
    <p class="quiet">It prints what to paste into your assistant.</p>
  <//>
`;
