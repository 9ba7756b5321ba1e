// The reports of agents about unexpected responses, newest first. All text is written by agents.
/** @typedef {import('../../answers.ts').Report} OneReport */
import { ask } from '/console/api.js';
import { html, useEffect, useState } from '/console/html.js';
import { pageOf } from '/console/shell/agent-name.js';
import { Demo } from '/console/shell/demo.js';
import { openTo } from '/console/shell/fields.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { Ago, exactly } from '/console/shell/time.js';
import { Problem, useDoing } from '/console/shell/use-doing.js';
import { visible, visibleLine } from '/console/visible.js';

const INTERVAL_MS = 15_000;
const PAGE = 50;

/** @type {Record<OneReport['severity'], { kind: string, words: string }>} */
const SEVERITY = {
  info: { kind: '', words: 'Note' },
  warning: { kind: 'wait', words: 'Warning' },
  error: { kind: 'bad', words: 'Error' },
};

/** @typedef {{ rows: OneReport[], next: string | null }} Older */

/** @param {{ place: URL }} props */
export function ReportsPage({ place }) {
  const agent = place.searchParams.get('agent');
  const path = /** @type {const} */ (
    `/owner/diagnostics?limit=${PAGE}${agent ? `&agent=${encodeURIComponent(agent)}` : ''}`
  );
  const { answer, error, reload } = useLoaded(path, INTERVAL_MS);
  const [older, setOlder] = useState(/** @type {Older | undefined} */ (undefined));
  useEffect(() => setOlder(undefined), [path]);
  const next = older ? older.next : answer?.next;
  const { busy, problem, run } = useDoing();
  const load = () =>
    run(async () => {
      const more = await ask('GET', `${path}&before=${next}`);
      setOlder((now) => ({ rows: [...(now?.rows ?? []), ...more.diagnostics], next: more.next }));
    });
  const reports = answer && [
    ...new Map([...answer.diagnostics, ...(older?.rows ?? [])].map((one) => [one.id, one])).values(),
  ];
  return html`
    <div class="page-head"><h1>Reports</h1></div>
    <div class="stack"><p class="quiet">What agents reported about unexpected answers. The reports are not verified, and are kept for 30 days.
      ${agent && html` Of one agent: <a href="/console/reports">show all</a>.`}</p>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!reports && !error && html`<${Loading} />`}
    ${reports?.length === 0 && html`<${NoReports} reload=${reload} of=${agent ?? undefined} />`}
    ${
      reports &&
      reports.length > 0 &&
      html`<ul role="list" class="sheet rows" id="reports">
        ${reports.map((report) => html`<${Report} key=${report.id} report=${report} />`)}
      </ul>`
    }
    <${Problem} problem=${problem} />
    ${next && html`<p class="more"><button type="button" id="older" disabled=${busy} onClick=${load}>Show older</button></p>`}
    </div>
  `;
}

/** @param {{ report: OneReport }} props */
function Report({ report }) {
  const [open, setOpen] = useState(false);
  const { kind, words } = SEVERITY[report.severity];
  return html`
    <li class="row entry" data-report=${report.id}>
      <details onToggle=${openTo(setOpen)}>
        <summary>
          <span class="badge" data-kind=${kind}>${words}</span>
          <span class="line theirs"><strong>${visibleLine(report.agent_name ?? 'An agent')}</strong> ${visibleLine(report.message)}</span>
          <span class="small quiet when"><${Ago} at=${report.received_at} /></span>
        </summary>
        ${open && html`<${Details} report=${report} />`}
      </details>
    </li>
  `;
}

/** @param {{ report: OneReport }} props */
function Details({ report }) {
  const code = (/** @type {string | null} */ text) => text && html`<code>${visibleLine(text)}</code>`;
  const facts = [
    ['The agent says', html`<span class="said">${visible(report.message)}</span>`],
    [
      'Agent',
      report.agent_public_id && html`<${Link} to=${pageOf(report.agent_public_id)}>${code(report.agent_public_id)}<//>`,
    ],
    ['Code', code(report.code)],
    ['Platform', code(report.platform)],
    ['Endpoint', code(report.endpoint)],
    ['Correlation id', code(report.correlation_id)],
    ['Context', report.context !== null && html`<pre>${visible(JSON.stringify(report.context, null, 2))}</pre>`],
    ['When', exactly(report.received_at)],
  ];
  return html`
    <dl class="facts small">
      ${facts.map(([title, value]) => value && html`<dt>${title}</dt><dd class="theirs">${value}</dd>`)}
    </dl>
  `;
}

/** `of`: the agent that the list is limited to. @param {{ reload: () => unknown, of: string | undefined }} props */
const NoReports = ({ reload, of }) => html`
  <${Empty} title="No agent reported anything">
    <p>A refusal tells an agent how to report it as a mistake. Such reports are listed here.</p>
    <${Demo} shown=${reload} of=${of} />
  <//>
`;
