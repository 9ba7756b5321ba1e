/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('/console/agents/filter.js').Names} Names */
/** @typedef {import('/console/agents/words.js').Verb} Verb */
import { badgeOf, CONTAINED, causeInWords, MOVE, MOVES, pauseInWords } from '/console/agents/words.js';
import { html } from '/console/html.js';
import { Link } from '/console/shell/router.js';
import { Ago } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

/**
 * `names`: of policies and owners, as far as they are known. `may`: whether whoever looks may stop it. `move(verb)` begins to.
 *
 * @param {{ agent: Agent, names: Names, may: boolean, move: (verb: Verb) => void }} props
 */
export function AgentRow({ agent, names, may, move }) {
  const { name, agent_id, status, contained, parent_agent_id } = agent;
  const { kind, words } = badgeOf(agent);
  const owner = names.owners.get(agent.owner_id);
  return html`
    <li class=${parent_agent_id ? 'row child' : 'row'} data-agent=${agent_id} data-status=${status} data-contained=${contained}>
      <div class="what">
        <p class="name"><strong class="theirs">${visibleLine(name)}</strong> <span class="badge" data-kind=${kind}>${words}</span></p>
        <p class="small quiet">
          ${parent_agent_id && html`child of <code>${parent_agent_id}</code> · `}${agent.agent_type === 'mcp_client' && html`<${Link} to=${`/console/clients?agent=${agent_id}`}>MCP client<span class="unseen">s that act as ${name}</span><//> · `}<code>${agent_id}</code> · since <${Since} at=${agent.created_at} /> · <${Link} to=${`/console/activity?agent=${agent_id}`}>Activity<span class="unseen"> of ${name}</span><//>
        </p>
        <p class="small quiet facts-line">
          ${parent_agent_id === null && html`<${Policy} agent=${agent} names=${names} />`}${owner && html`${parent_agent_id === null && ' · '}Owner <span class="theirs">${visibleLine(owner)}</span>`}
        </p>
        <${Why} agent=${agent} />
      </div>
      <div class="buttons">
        ${
          may &&
          contained !== 'expired' &&
          MOVES[status].map(
            (verb) => html`<button type="button" key=${verb} class=${`compact ${verb}`} onClick=${() => move(verb)}>
              ${MOVE[verb].name}<span class="unseen"> ${name}</span>
            </button>`,
          )
        }
      </div>
    </li>
  `;
}

/** @param {{ agent: Agent, names: Names }} props */
function Policy({ agent: { policy_id }, names: { policies } }) {
  if (policy_id === null) return html`<span class="why">No policy: every call is denied</span>`;
  return html`Policy <span class="theirs">${visibleLine(policies.get(policy_id) ?? '…')}</span>`;
}

/** @param {{ at: string }} props */
function Since({ at }) {
  const day = new Date(at);
  const year = day.getFullYear() === new Date().getFullYear() ? undefined : 'numeric';
  return html`<time datetime=${at}>${day.toLocaleDateString(undefined, { day: 'numeric', month: 'short', year })}</time>`;
}

/**
 * What halts it, and what ends that.
 *
 * @param {{ agent: Agent }} props
 */
function Why({ agent: { status, status_cause, status_detail, status_since, breakers, contained, expires_at } }) {
  if (contained === 'expired') return html`<p class="small why">Its time was over <${Ago} at=${expires_at} />.</p>`;
  if (contained && status === 'active') return html`<p class="small why">${CONTAINED[contained].why}</p>`;
  if (status === 'active') return breakers.map((breaker) => html`<p class="small why">${pauseInWords(breaker)}</p>`);
  if (status === 'pending')
    return html`<p class="small why">
      It was approved <${Ago} at=${status_since} />, and starts when it collects its key. After an hour it is revoked.
    </p>`;
  if (status === 'pending_bind')
    return html`<p class="small why">It starts when its key is bound, with the token that came with it.</p>`;
  if (status !== 'suspended' && status !== 'revoked') return null;
  return html`<p class="small why">
    ${causeInWords(status_cause)}${status_since && html`, <${Ago} at=${status_since} />`}${status_detail && html`: <span class="theirs">“${visibleLine(status_detail)}”</span>`}
  </p>`;
}
