// What was decided, newest first.
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { ActivityRow } from '/console/activity/activity-row.js';
import { Filter, NAMES, queryOf } from '/console/activity/filter.js';
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { Link } from '/console/shell/router.js';
import { isSought, soughtIn } from '/console/shell/sought.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 10_000;
const PAGE = 50;

/** @param {{ place: URL }} props */
export function ActivityPage({ place }) {
  const sought = soughtIn(place, NAMES);
  const query = queryOf(sought);
  const path = /** @type {const} */ (`/owner/audit?limit=${PAGE}&${query}`);
  const { answer, error, reload } = useLoaded(path, EVERY_MS);
  const agents = useLoaded('/owner/agents', 60_000).answer?.agents ?? [];
  const people = useLoaded('/owner/owners', 60_000).answer?.owners ?? [];
  const platforms = useLoaded('/owner/platforms', 60_000).answer?.platforms ?? [];
  const older = useOlder(path);
  const names = new Map([
    ...people.map(({ id, email }) => /** @type {const} */ ([id, email])),
    ...agents.map(({ agent_id, name }) => /** @type {const} */ ([agent_id, name])),
  ]);
  const rows = answer && withoutDoubles([...answer.rows, ...older.rows]);
  const next = older.asked ? older.next : answer?.next;
  return html`
    <div class="page-head">
      <h1>Activity</h1>
      <p class="small"><a href=${`/owner/audit/export?${query}`} download="activity.ndjson" id="export">Export with receipts</a></p>
    </div>
    <${Filter} sought=${sought} agents=${agents} platforms=${new Map(platforms.map(({ platform_id, name }) => [platform_id, name]))} />
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!rows && !error && html`<${Loading} />`}
    ${rows?.length === 0 && !next && html`<${Nothing} filtered=${isSought(sought)} />`}
    ${
      rows &&
      rows.length > 0 &&
      html`<ul role="list" class="sheet rows" id="activity">
        ${rows.map((row) => html`<${ActivityRow} key=${row.id} row=${row} names=${names} />`)}
      </ul>`
    }
    ${next && html`<p class="more"><button type="button" onClick=${() => older.load(next)}>${rows && rows.length > 0 ? 'Show older' : 'Look further back'}</button></p>`}
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
    ? html`<${Empty} title="Nothing fits"><p>No decision on record fits this filter. <${Link} to="/console/activity">Show all<//></p><//>`
    : html`<${Empty} title="Nothing was decided yet">
        <p>Every call of an agent leaves a line here, with a signed receipt: what was allowed, held, and denied, and why.</p>
      <//>`;
