// The page of one agent: what it may do, what it did, what waits for a decision, and every change that an owner can make.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
/** @typedef {import('/console/agents/status-labels.js').Verb} Verb */

import { Earlier } from '/console/agent/earlier.js';
import { Facts } from '/console/agent/facts.js';
import { Family } from '/console/agent/family.js';
import { Grants } from '/console/agent/grants.js';
import { Limits } from '/console/agent/limits.js';
import { StaticKeys } from '/console/agent/static-keys.js';
import { Timeline } from '/console/agent/timeline.js';
import { Waits } from '/console/agent/waits.js';
import { MoveDialog } from '/console/agents/move-dialog.js';
import { badgeOf, MOVE, MOVES } from '/console/agents/status-labels.js';
import { StatusReason } from '/console/agents/status-reason.js';
import { Refused } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Id } from '/console/shell/copy.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link, navigate } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 10_000;

/** @param {{ place: URL }} props */
export function AgentPage({ place }) {
  const id = place.pathname.split('/').at(-1) ?? '';
  const { answer: agent, error, reload } = useLoaded(/** @type {const} */ (`/owner/agents/${id}`), EVERY_MS);
  if (error instanceof Refused && error.status === 404) return html`<${Unknown} id=${id} />`;
  return html`
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!agent && !error && html`<${Loading} />`}
    ${agent && html`<${Whole} agent=${agent} wanted=${place.searchParams.get('grant')} reload=${reload} />`}
  `;
}

/** `wanted`: the platform for which a link opens the grant dialog. @param {{ agent: WholeAgent, wanted: string | null, reload: () => void }} props */
function Whole({ agent, wanted, reload }) {
  const owner = useOwner();
  const may = mayChange(owner);
  const [verb, setVerb] = useState(/** @type {Verb | undefined} */ (undefined));
  const { agent_id, name, status, contained } = agent;
  const { kind, words } = badgeOf(agent);
  const moved = () => (verb === 'delete' ? navigate('/console/agents') : reload());
  return html`
    <div class="agent-page" data-agent=${agent_id}>
      <div class="page-head">
        <div>
          <p class="small"><${Link} to="/console/agents" id="to-agents">Agents<//></p>
          <h1><span class="theirs">${visibleLine(name)}</span> <span class="badge" data-kind=${kind}>${words}</span></h1>
          <p class="small quiet"><${Id} id=${agent_id} what="the id of the agent" /></p>
        </div>
        ${
          may &&
          html`<div class="buttons">
            ${MOVES[status]
              .filter((one) => contained !== 'expired' || one === 'delete')
              .map(
                (one) =>
                  html`<button type="button" key=${one} data-verb=${one} class=${one === 'resume' ? '' : 'danger'} onClick=${() => setVerb(one)}>${MOVE[one].name}</button>`,
              )}
          </div>`
        }
      </div>
      <${StatusReason} agent=${agent} />
      ${!may && html`<p class="quiet small">Your role is ${owner.role}: an admin can change and stop agents.</p>`}
      <div class="stack">
        <${Facts} agent=${agent} may=${may} changed=${reload} />
        <${Waits} agent=${agent} />
        <${Grants} agent=${agent} may=${may} wanted=${wanted} />
        <${Limits} agent=${agent} />
<${Earlier} agent=${agent} />
        <${Family} agent=${agent} />
        <${StaticKeys} agent=${agent} may=${may} />
        <${Timeline} agent=${agent} />
      </div>
      ${verb && html`<${MoveDialog} agent=${agent} verb=${verb} onClose=${() => setVerb(undefined)} onMoved=${moved} />`}
    </div>
  `;
}

/** @param {{ id: string }} props */
const Unknown = ({ id }) => html`
  <div class="page-head"><h1>Agent</h1></div>
  <${Empty} title="There is no such agent">
    <p>Your organisation has no agent <code class="theirs">${visibleLine(decodeURIComponent(id))}</code>. It may have been deleted: what it did stays on record.</p>
    <p><${Link} to="/console/agents" class="button primary">All agents<//></p>
  <//>
`;
