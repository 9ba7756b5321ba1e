// Finding some of what is on record: by result, agent, platform and days.
/** @typedef {import('../../answers.ts').Agent} Agent */
import { RESULTS } from '/console/activity/words.js';
import { html } from '/console/html.js';
import { Choice } from '/console/shell/choice.js';
import { valueTo } from '/console/shell/fields.js';
import { seek } from '/console/shell/sought.js';

export const NAMES = /** @type {const} */ (['result', 'agent', 'platform', 'from', 'to']);

/** `from`, `to`: days as `2026-11-21`, by the clock of whoever looks. @typedef {Record<(typeof NAMES)[number], string>} Sought */

/**
 * The beginning of a day, or of the one after it; undefined: that is no day.
 *
 * @param {string} day
 */
function startOf(day, later = 0) {
  const [, year = '', month = '', date = ''] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day) ?? [];
  const start = new Date(Number(year), Number(month) - 1, Number(date) + later);
  return year === '' || Number.isNaN(start.getTime()) ? undefined : start.toISOString();
}

/** The same as the owner API asks it. */
export function queryOf(/** @type {Sought} */ { result, agent, platform, from, to }) {
  const since = startOf(from);
  const until = startOf(to, 1);
  return new URLSearchParams({
    // What owners changed has no result of its own.
    ...(result && { [result === 'event' ? 'kind' : 'result']: result }),
    ...(agent && { agent }),
    ...(platform && { platform }),
    ...(since && { since }),
    ...(until && { until }),
  });
}

const OF_RESULTS = new Map([
  ...Object.entries(RESULTS).map(([value, { words }]) => /** @type {const} */ ([value, words])),
  /** @type {const} */ (['event', 'Decisions and changes']),
]);

/** @param {{ sought: Sought, agents: readonly Agent[], platforms: ReadonlyMap<string, string> }} props */
export function Filter({ sought, agents, platforms }) {
  const set = (/** @type {keyof Sought} */ name) => (/** @type {string} */ value) =>
    seek('/console/activity', { ...sought, [name]: value });
  const named = new Map(agents.map(({ agent_id, name }) => [agent_id, name]));
  return html`
    <div class="filter" role="search">
      <${Choice} id="by-result" label="Result" all="All results" sorted=${false} options=${OF_RESULTS} chosen=${sought.result} choose=${set('result')} />
      <${Choice} id="by-agent" label="Agent" all="All agents" options=${named} chosen=${sought.agent} choose=${set('agent')} />
      <${Choice} id="by-platform" label="Platform" all="All platforms" options=${platforms} chosen=${sought.platform} choose=${set('platform')} />
      <span class="days"><${Day} id="from" label="From" value=${sought.from} max=${sought.to} hear=${set('from')} />
      <${Day} id="to" label="To" value=${sought.to} min=${sought.from} hear=${set('to')} /></span>
    </div>
  `;
}

/** @param {{ id: string, label: string, value: string, min?: string, max?: string, hear: (value: string) => void }} props */
const Day = ({ id, label, value, min = '', max = '', hear }) => html`<span class="day">
  <label for=${id}>${label}</label>
  <input id=${id} type="date" value=${value} min=${min} max=${max} onChange=${valueTo(hear)} />
</span>`;
