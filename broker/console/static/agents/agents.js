// The organisation's agents, and stopping them.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/words.js').Verb} Verb */
import { AgentRow } from '/console/agents/agent-row.js';
import { MoveDialog } from '/console/agents/move-dialog.js';
import { html, useState } from '/console/html.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 10_000;

export function AgentsPage() {
  const { answer, error, reload } = useLoaded('/owner/agents', EVERY_MS);
  const owner = useOwner();
  const [moving, setMoving] = useState(/** @type {{ agent: Agent, verb: Verb } | undefined} */ (undefined));
  const agents = answer?.agents;
  return html`
    <div class="page-head"><h1>Agents</h1>
      <p class="small"><${Link} to="/console/clients" id="to-clients">MCP clients<//> · <${Link} to="/console/reports" id="to-reports">What they reported<//></p></div>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!agents && !error && html`<${Loading} />`}
    ${agents?.length === 0 && html`<${NoAgents} />`}
    ${
      agents &&
      agents.length > 0 &&
      html`<ul role="list" class="sheet rows" id="agents">
        ${inFamilies(agents).map(
          (agent) =>
            html`<${AgentRow} key=${agent.agent_id} agent=${agent} may=${mayChange(owner)} move=${(/** @type {Verb} */ verb) => setMoving({ agent, verb })} />`,
        )}
      </ul>`
    }
    ${agents && agents.length > 0 && !mayChange(owner) && html`<p class="quiet small">Your role is ${owner.role}: an admin can stop agents.</p>`}
    ${moving && html`<${MoveDialog} ...${moving} onClose=${() => setMoving(undefined)} onMoved=${reload} />`}
  `;
}

/**
 * Each agent with its children under it; those that are stopped for good stand last, with whoever is contained by that.
 *
 * @param {Agent[]} agents
 */
function inFamilies(agents) {
  const lastStopped = (/** @type {Agent[]} */ some) =>
    [...some].sort((a, b) => Number(a.status === 'revoked') - Number(b.status === 'revoked'));
  const known = new Set(agents.map(({ agent_id }) => agent_id));
  const eldest = agents.filter(({ parent_agent_id }) => parent_agent_id === null || !known.has(parent_agent_id));
  const childrenOf = (/** @type {Agent} */ agent) =>
    agents.filter(({ parent_agent_id }) => parent_agent_id === agent.agent_id);
  return lastStopped(eldest).flatMap((agent) => [agent, ...lastStopped(childrenOf(agent))]);
}

const NoAgents = () => html`
  <${Empty} title="There are no agents yet">
    <p>An agent acts through this broker with a key of its own. Make one on the machine of the broker:</p>
    <pre class="command">npx agent-broker agent create my-agent</pre>
    <p class="quiet">It prints what to paste into your assistant.</p>
  <//>
`;
