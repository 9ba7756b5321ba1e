// Finding some of many agents: by words and by state.
/** @typedef {import('../../answers.ts').Agent} Agent */
import { badgeOf } from '/console/agents/words.js';
import { html } from '/console/html.js';
import { Choice } from '/console/shell/choice.js';
import { valueTo } from '/console/shell/fields.js';
import { isSought, seek } from '/console/shell/sought.js';

/** @typedef {{ words: string, state: string }} Sought */
/** What else is known of agents, by its id. @typedef {{ policies: ReadonlyMap<string, string>, owners: ReadonlyMap<string, string> }} Names */

/**
 * @param {Agent} agent
 * @param {Sought} sought
 * @param {Names} names
 */
export function fits(agent, { words, state }, { policies, owners }) {
  if (state && badgeOf(agent).words !== state) return false;
  const text = [agent.name, agent.agent_id, policies.get(agent.policy_id ?? ''), owners.get(agent.owner_id)]
    .join(' ')
    .toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

/**
 * `fitting`: how many fit.
 *
 * @param {{ agents: readonly Agent[], sought: Sought, fitting: number }} props
 */
export function Filter({ agents, sought, fitting }) {
  const set = (/** @type {keyof Sought} */ name) => (/** @type {string} */ value) =>
    seek('/console/agents', { ...sought, [name]: value });
  const states = new Map(agents.map((agent) => [badgeOf(agent).words, badgeOf(agent).words]));
  return html`
    <div class="filter" role="search">
      <label class="unseen" for="words">Search</label>
      <input id="words" type="search" placeholder="Name, id, policy or owner" value=${sought.words} onInput=${valueTo(set('words'))} />
      <${Choice} id="by-state" label="State" all="All states" options=${states} chosen=${sought.state} choose=${set('state')} />
      <p class="small quiet" role="status" id="fitting">${isSought(sought) ? `${fitting} of ${agents.length}` : `${agents.length} agents`}</p>
    </div>
  `;
}
