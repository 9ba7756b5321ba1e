// The activity page: the audit rows, newest first.
/** @typedef {import('../../answers.ts').AuditRow} AuditRow */
import { ActivityRow } from '/console/activity/activity-row.js';
import { Filter, NAMES, queryOf } from '/console/activity/filter.js';
import { asError, ask } from '/console/api.js';
import { html, useEffect, useMemo, useRef, useState } from '/console/html.js';
import { useChangers } from '/console/shell/changers.js';
import { Demo } from '/console/shell/demo.js';
import { filtersIn, isFiltered } from '/console/shell/filters.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { exactly } from '/console/shell/time.js';

const INTERVAL_MS = 10_000;
const PAGE = 50;
/** The maximum number of requests for one press of the button; each request scans 20,000 rows at most. */
const MAX_REQUESTS = 25;

/** @param {{ place: URL }} props */
export function ActivityPage({ place }) {
  const filters = filtersIn(place, NAMES);
  // "The last hour" ends when the query was first made, so that its pages fit together.
  const query = useMemo(() => queryOf(filters, Date.now()), [place.search]);
  const path = /** @type {const} */ (`/owner/audit?limit=${PAGE}&history=true&${query}`);
  const { answer, error, reload } = useLoaded(path, INTERVAL_MS);
  const agents = useLoaded('/owner/agents?sort=name&limit=200', 60_000).answer;
  const changers = useChangers();
  const platforms = useLoaded('/owner/platforms', 60_000).answer?.platforms ?? [];
  const older = useOlder(path);
  const rows = answer && entriesOf([...answer.rows, ...older.rows]);
  const names = new Map([...changers, ...(rows ?? []).flatMap(({ agent_names }) => Object.entries(agent_names))]);
  const next = older.asked ? older.next : answer?.next;
  return html`
    <div class="page-head">
      <h1>Activity</h1>
      <${Exports} query=${query} />
    </div>
    <${Filter} filters=${filters} agents=${agents} names=${names} platforms=${new Map(platforms.map(({ platform_id, name }) => [platform_id, name]))} />
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!rows && !error && html`<${Loading} />`}
    ${rows?.length === 0 && !next && isFiltered(filters) && html`<${NothingFits} />`}
    ${rows?.every(({ kind }) => kind === 'event') && !next && !isFiltered(filters) && html`<${NoCalls} reload=${reload} />`}
    ${
      rows &&
      rows.length > 0 &&
      html`<ul role="list" class="sheet rows" id="activity">
        ${rows.map((row) => html`<${ActivityRow} key=${row.history ? row.approval_id : row.id} row=${row} names=${names} />`)}
      </ul>`
    }
    ${older.error && html`<${Failed} error=${older.error} again=${() => next && older.load(next)} />`}
    ${next && html`<${More} next=${next} found=${rows?.length ?? 0} older=${older} />`}
  `;
}

/** Export links for the rows that pass the filter. @param {{ query: URLSearchParams }} props */
const Exports = ({ query }) => html`<p class="small exports">
  <span class="quiet">Export what is shown:</span>
  <a href=${`/owner/audit/export?format=csv&${query}`} download="activity.csv" id="export-csv">CSV</a>
  <a href=${`/owner/audit/export?${query}`} download="activity.jsonl" id="export">JSON lines with receipts</a>
</p>`;

/**
 * The button for older rows; and how far back was searched, when few rows pass the filter.
 *
 * @param {{ next: string, found: number, older: ReturnType<typeof useOlder> }} props
 */
const More = ({ next, found, older }) => html`<p class="more">
  ${older.looking ? html`<span class="quiet small" role="status">Looking further back…</span> ` : found < PAGE && html`<span class="quiet small" role="status">Looked back to ${exactly(momentOf(next))}.</span> `}
  <button type="button" id="older" disabled=${older.looking} onClick=${() => older.load(next)}>${found > 0 ? 'Show older' : 'Look further back'}</button>
</p>`;

/** The time at which a row with this id was created: part of the id (UUIDv7, RFC 9562 section 5.7). */
const momentOf = (/** @type {string} */ id) =>
  new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16)).toISOString();

/**
 * Loads pages of rows older than the newest page.
 *
 * @param {`/owner/audit?${string}`} path
 */
function useOlder(path) {
  const [state, setState] = useState(
    /** @type {{ rows: AuditRow[], next?: string | null, asked?: boolean, looking?: boolean, error?: Error | undefined }} */ ({
      rows: [],
    }),
  );
  const current = useRef(path);
  current.current = path;
  useEffect(() => setState({ rows: [] }), [path]);
  const load = async (/** @type {string} */ from) => {
    setState((now) => ({ ...now, looking: true, error: undefined }));
    const ended = (/** @type {Error | undefined} */ error) => {
      if (current.current === path) setState((now) => ({ ...now, looking: false, error }));
    };
    /** @type {string | null} */
    let before = from;
    try {
      // One response covers a bounded number of scanned rows: a filter that few rows pass needs several requests.
      for (let looks = 0, found = 0; before !== null && found === 0 && looks < MAX_REQUESTS; looks++) {
        /** @type {import('../../answers.ts').Answer<'GET', '/owner/audit'>} */
        const page = await ask('GET', `${path}&before=${before}`);
        if (current.current !== path) return;
        before = page.next;
        found = page.rows.length;
        setState((now) => ({ ...now, rows: [...now.rows, ...page.rows], next: page.next, asked: true }));
      }
      ended(undefined);
    } catch (thrown) {
      ended(asError(thrown));
    }
  };
  return { ...state, load };
}

/**
 * Returns one entry per call: of the rows of a held call the newest, whose history has the other steps. The newest page is reloaded while older
 * pages stay, so rows may overlap.
 */
function entriesOf(/** @type {AuditRow[]} */ rows) {
  const entries = new Map();
  for (const row of [...rows].sort((a, b) => (a.id < b.id ? 1 : -1))) {
    const key = row.history ? row.approval_id : row.id;
    if (!entries.has(key)) entries.set(key, row);
  }
  return [...entries.values()];
}

const NothingFits = () => html`
  <${Empty} title="Nothing fits">
    <p>No decision on record fits this filter. <${Link} to="/console/activity">Show all<//></p>
  <//>
`;

/** @param {{ reload: () => unknown }} props */
const NoCalls = ({ reload }) => html`
  <${Empty} title="No agent made a call yet">
    <p>Every call of an agent leaves a line here, with a signed receipt: what was allowed, held, and refused, and why. So does what owners change.</p>
    <${Demo} shown=${reload} />
  <//>
`;
