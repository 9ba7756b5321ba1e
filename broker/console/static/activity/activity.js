// What was decided, newest first. The filter stands in the address, so that it can be shared and survives a reload.
/** @typedef {import('../../answers.ts').Agent} Agent */
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { ActivityRow } from '/console/activity/activity-row.js';
import { RESULTS } from '/console/activity/words.js';
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { valueTo } from '/console/shell/fields.js';
import { navigate } from '/console/shell/router.js';
import { useLoaded } from '/console/shell/use-loaded.js';
import { visibleLine } from '/console/visible.js';

const EVERY_MS = 10_000;
const PAGE = 50;

/** @typedef {{ result: string, agent: string }} Sought */

/** @param {{ place: URL }} props */
export function ActivityPage({ place }) {
  const filter = { result: place.searchParams.get('result') ?? '', agent: place.searchParams.get('agent') ?? '' };
  const query = new URLSearchParams({ limit: String(PAGE) });
  // What owners changed has no result of its own.
  if (filter.result) query.set(filter.result === 'event' ? 'kind' : 'result', filter.result);
  if (filter.agent) query.set('agent', filter.agent);
  const path = /** @type {const} */ (`/owner/audit?${query}`);
  const { answer, error, reload } = useLoaded(path, EVERY_MS);
  const agents = useLoaded('/owner/agents', 60_000).answer?.agents ?? [];
  const people = useLoaded('/owner/owners', 60_000).answer?.owners ?? [];
  const owners = new Map(people.map(({ id, email }) => [id, email]));
  const older = useOlder(path);
  const names = new Map(agents.map(({ agent_id, name }) => [agent_id, name]));
  const rows = answer && withoutDoubles([...answer.rows, ...older.rows]);
  const next = older.asked ? older.next : answer?.next;
  return html`
    <div class="page-head">
      <h1>Activity</h1>
      <${Filter} filter=${filter} agents=${agents} />
    </div>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!rows && !error && html`<${Loading} />`}
    ${rows?.length === 0 && !next && html`<${Nothing} filtered=${filter.result !== '' || filter.agent !== ''} />`}
    ${
      rows &&
      rows.length > 0 &&
      html`<ul role="list" class="sheet rows" id="activity">
        ${rows.map((row) => html`<${ActivityRow} key=${row.id} row=${row} name=${names.get(row.agent_public_id ?? '')} owners=${owners} />`)}
      </ul>`
    }
    ${next && html`<p class="more"><button type="button" onClick=${() => older.load(next)}>${rows && rows.length > 0 ? 'Show older' : 'Look further back'}</button></p>`}
  `;
}

/** @param {{ filter: Sought, agents: Agent[] }} props */
function Filter({ filter, agents }) {
  const set = (/** @type {keyof Sought} */ name) =>
    valueTo((chosen) => {
      const wanted = Object.entries({ ...filter, [name]: chosen }).filter(([, value]) => value !== '');
      const query = new URLSearchParams(wanted).toString();
      navigate(query ? `/console/activity?${query}` : '/console/activity', { replace: true });
    });
  const option = (/** @type {string} */ value, /** @type {string} */ words, /** @type {string} */ chosen) =>
    html`<option key=${value} value=${value} selected=${value === chosen}>${words}</option>`;
  // Until the names are there, and for one that has none any more.
  const nameless = filter.agent !== '' && !agents.some(({ agent_id }) => agent_id === filter.agent);
  return html`
    <div class="filter">
      <label class="unseen" for="by-result">Result</label>
      <select id="by-result" onChange=${set('result')}>
        ${option('', 'All results', filter.result)}
        ${Object.entries(RESULTS).map(([value, { words }]) => option(value, words, filter.result))}
        ${option('event', 'What owners did', filter.result)}
      </select>
      <label class="unseen" for="by-agent">Agent</label>
      <select id="by-agent" onChange=${set('agent')}>
        ${option('', 'All agents', filter.agent)}
        ${nameless && option(filter.agent, visibleLine(filter.agent), filter.agent)}
        ${agents.map(({ agent_id, name }) => option(agent_id, visibleLine(name), filter.agent))}
      </select>
    </div>
  `;
}

/**
 * Pages that were asked for below the newest one.
 *
 * @param {`/owner/audit?${string}`} path
 */
function useOlder(path) {
  const [state, setState] = useState(
    /** @type {{ rows: AuditRow[], next?: string | null, asked?: boolean }} */ ({ rows: [] }),
  );
  useEffect(() => setState({ rows: [] }), [path]);
  const load = async (/** @type {string} */ before) => {
    const { rows, next } = await ask('GET', `${path}&before=${before}`);
    setState((now) => ({ rows: [...now.rows, ...rows], next, asked: true }));
  };
  return { ...state, load };
}

/** The newest page moves on while older ones stay. */
const withoutDoubles = (/** @type {AuditRow[]} */ rows) => [...new Map(rows.map((row) => [row.id, row])).values()];

/** @param {{ filtered: boolean }} props */
const Nothing = ({ filtered }) =>
  filtered
    ? html`<${Empty} title="Nothing fits"><p>No decision on record fits this filter. <a href="/console/activity">Show all</a></p><//>`
    : html`<${Empty} title="Nothing was decided yet">
        <p>Every call of an agent leaves a line here, with a signed receipt: what was allowed, held, and denied, and why.</p>
      <//>`;
