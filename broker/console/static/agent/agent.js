// The page of one agent: what it may do, what it did, what waits for a decision, and every change that an owner can make.
/** @typedef {import('../../answers.ts').WholeAgent} WholeAgent */
/** @typedef {import('/console/agents/status-labels.js').Verb} Verb */
import { ActivityRow } from '/console/activity/activity-row.js';
import { Facts } from '/console/agent/facts.js';
import { Family } from '/console/agent/family.js';
import { Grants } from '/console/agent/grants.js';
import { Section } from '/console/agent/section.js';
import { StaticKeys } from '/console/agent/static-keys.js';
import { Waits } from '/console/agent/waits.js';
import { MoveDialog } from '/console/agents/move-dialog.js';
import { badgeOf, MOVE, MOVES } from '/console/agents/status-labels.js';
import { StatusReason } from '/console/agents/status-reason.js';
import { Refused } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { limitOf } from '/console/policies/effects.js';
import { useChangers } from '/console/shell/changers.js';
import { Id } from '/console/shell/copy.js';
import { Demo } from '/console/shell/demo.js';
import { formatDuration } from '/console/shell/duration.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { mayChange, useOwner } from '/console/shell/owner.js';
import { Link, navigate } from '/console/shell/router.js';
import { exactly, useNow } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 10_000;

/** @param {{ place: URL }} props */
export function AgentPage({ place }) {
  const id = place.pathname.split('/').at(-1) ?? '';
  const { answer: agent, error, reload } = useLoaded(/** @type {const} */ (`/owner/agents/${id}`), INTERVAL_MS);
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

// The rules with a look-back condition that currently apply to an agent because of its earlier calls.
/** Renders nothing when no such rule applies. @param {{ agent: WholeAgent }} props */
function Earlier({ agent: { earlier } }) {
  const now = useNow(15_000);
  if (earlier.length === 0) return null;
  return html`<${Section} id="earlier" title="Because of an earlier call">
    <ul role="list" class="sheet rows">
      ${earlier.map(
        ({ source, rule, audit_id, until }) => html`<li class="row line-row" key=${`${source} ${rule}`}>
          <span class="what theirs"><strong>${visibleLine(rule)}</strong> <span class="quiet">${source}</span><br />
            <span class="quiet">applies for another <time datetime=${until} title=${exactly(until)}>${formatDuration(Math.max(0, Date.parse(until) - now))}</time> · </span>
            ${audit_id === null ? 'the store was restored' : html`<${Link} to=${`/console/activity?words=${audit_id}`}>the call<//>`}
          </span>
          <span class="badge" data-kind="wait">Applies</span>
        </li>`,
      )}
    </ul>
  <//>`;
}

// How much of the limits of the rules in force an agent has used.
/** Renders nothing when no rule has a limit. @param {{ agent: WholeAgent }} props */
function Limits({ agent: { limits } }) {
  const now = useNow(15_000);
  if (limits.length === 0) return null;
  return html`<${Section} id="limits" title="Limits">
    <ul role="list" class="sheet rows">
      ${limits.map((limit) => {
        const { source, rule, most, used, resets_at } = limit;
        return html`<li class="row line-row" key=${`${source} ${rule}`}>
          <span class="what theirs"><strong>${visibleLine(rule)}</strong> <span class="quiet">${source}</span><br />
            ${used} of ${visibleLine(limitOf(limit))}
            <span class="quiet"> · resets <time datetime=${resets_at} title=${exactly(resets_at)}>in ${formatDuration(Math.max(0, Date.parse(resets_at) - now))}</time></span>
          </span>
          ${used >= most && html`<span class="badge" data-kind="wait">Used up</span>`}
        </li>`;
      })}
    </ul>
  <//>`;
}

// The audit rows of an agent: its calls and the changes made to it, newest first.
const SHOWN = 20;

/** @param {{ agent: WholeAgent }} props */
function Timeline({ agent: { id, agent_id, name } }) {
  const { answer, error, reload } = useLoaded(
    /** @type {const} */ (`/owner/audit?agent=${id}&limit=${SHOWN}`),
    INTERVAL_MS,
  );
  const names = useChangers().set(agent_id, name);
  const rows = answer?.rows;
  const all = html`<${Link} to=${`/console/activity?agent=${agent_id}`} class="small" id="all-activity">All of it<span class="unseen"> in Activity</span><//>`;
  return html`<${Section} id="timeline" title="Timeline" action=${rows && rows.length > 0 && all}>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!rows && !error && html`<${Loading} />`}
    ${rows && rows.length < SHOWN && rows.every(({ kind }) => kind === 'event') && html`<div class="sheet none"><p class="quiet">It has made no call yet. Every call leaves a line here, with a signed receipt.</p><${Demo} shown=${reload} of=${agent_id} /></div>`}
    ${rows && rows.length > 0 && html`<ul role="list" class="sheet rows" id="activity">${rows.map((row) => html`<${ActivityRow} key=${row.id} row=${row} names=${names} />`)}</ul>`}
  <//>`;
}
