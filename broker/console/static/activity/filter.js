// Filters the audit rows by words, time, result, agent, platform and reason.
/** @typedef {import('../../answers.ts').Agent} Agent */
import { boundsOf, DAYS, formatZone, isOfDays, OF_TIMES } from '/console/activity/period.js';
import { OF_REASONS, RESULTS } from '/console/activity/row-labels.js';
import { html, useEffect, useState } from '/console/html.js';
import { Choice } from '/console/shell/choice.js';
import { valueTo } from '/console/shell/fields.js';
import { applyFilters } from '/console/shell/filters.js';

export const NAMES = /** @type {const} */ (['words', 'time', 'from', 'to', 'result', 'agent', 'platform', 'reason']);

/** `from`, `to`: days as `2026-11-21`, in the browser's time zone. @typedef {Record<(typeof NAMES)[number], string>} Filters */

/** Filter values for a kind of row instead of a result. @type {Readonly<Record<string, string>>} */
const KINDS = { event: 'Decisions and changes', action: 'Calls' };

/**
 * Converts the filter to the query of the owner API.
 *
 * @param {Filters} filters
 * @param {number} now milliseconds: the end of "the last hour"
 */
export function queryOf(filters, now) {
  const { words, result, agent, platform, reason } = filters;
  const { since, until } = boundsOf(filters, now);
  const text = words.trim();
  return new URLSearchParams({
    ...(text && { text }),
    ...(result && { [KINDS[result] ? 'kind' : 'result']: result }),
    ...(agent && { agent }),
    ...(platform && { platform }),
    ...(reason && { reason }),
    ...(since && { since }),
    ...(until && { until }),
  });
}

const OF_RESULTS = new Map([
  ...Object.entries(RESULTS).map(([value, { words }]) => /** @type {const} */ ([value, words])),
  ...Object.entries(KINDS),
]);

/** Delay after the last keystroke before the list is filtered. */
const WRITING_MS = 300;

/**
 * `agents`: the first of them by name. `names`: of those in the rows, by id.
 *
 * @param {{ filters: Filters, agents: { agents: readonly Agent[], total?: number } | undefined, names: ReadonlyMap<string, string>, platforms: ReadonlyMap<string, string> }} props
 */
export function Filter({ filters, agents, names, platforms }) {
  const change = (/** @type {Partial<Filters>} */ some) => applyFilters('/console/activity', { ...filters, ...some });
  const set = (/** @type {keyof Filters} */ name) => (/** @type {string} */ value) => change({ [name]: value });
  const day = (/** @type {'from' | 'to'} */ name) => (/** @type {string} */ value) =>
    change({ time: DAYS, [name]: value });
  const listed = agents?.agents ?? [];
  const named = new Map(listed.map(({ agent_id, name }) => [agent_id, name]));
  const chosen = names.get(filters.agent);
  if (chosen !== undefined) named.set(filters.agent, chosen);
  const more = (agents?.total ?? 0) - listed.length;
  const days = isOfDays(filters);
  return html`
    <div class="filter whole-line" role="search">
      <${Words} words=${filters.words} hear=${set('words')} />
      <${Choice} id="by-time" label="Time" all="Any time" sorted=${false} options=${OF_TIMES} chosen=${days ? DAYS : filters.time} choose=${(/** @type {string} */ time) => change({ time, from: '', to: '' })} />
      <${Choice} id="by-result" label="Result" all="All results" sorted=${false} options=${OF_RESULTS} chosen=${filters.result} choose=${set('result')} />
      <${Choice} id="by-agent" label="Agent" all="All agents" options=${named} chosen=${filters.agent} choose=${set('agent')} more=${more > 0 ? 'Search for others by their name' : ''} />
      <${Choice} id="by-platform" label="Platform" all="All platforms" options=${platforms} chosen=${filters.platform} choose=${set('platform')} />
      <${Choice} id="by-reason" label="Reason" all="All reasons" options=${OF_REASONS} chosen=${filters.reason} choose=${set('reason')} />
      ${
        days &&
        html`<span class="days"><${Day} id="from" label="From" value=${filters.from} max=${filters.to} hear=${day('from')} />
        <${Day} id="to" label="To" value=${filters.to} min=${filters.from} hear=${day('to')} /></span>`
      }
      <span class="small quiet zone" id="zone">Times in ${formatZone()}</span>
    </div>
  `;
}

/** @param {{ words: string, hear: (value: string) => void }} props */
function Words({ words, hear }) {
  const [written, setWritten] = useState(words);
  useEffect(() => setWritten(words), [words]);
  useEffect(() => {
    if (written === words) return undefined;
    const timer = setTimeout(() => hear(written), WRITING_MS);
    return () => clearTimeout(timer);
  }, [written]);
  return html`
    <label class="unseen" for="words">Search path, reason, agent, detail or id</label>
    <input id="words" type="search" maxlength="200" placeholder="Search path, reason, detail, agent, platform, the agent’s words, or an id" value=${written} onInput=${valueTo(setWritten)} />
  `;
}

/** @param {{ id: string, label: string, value: string, min?: string, max?: string, hear: (value: string) => void }} props */
const Day = ({ id, label, value, min = '', max = '', hear }) => html`<span class="day">
  <label for=${id}>${label}</label>
  <input id=${id} type="date" value=${value} min=${min} max=${max} onChange=${valueTo(hear)} />
</span>`;
