// The overview page, with statistics of calls: over time, time to decision, busiest agents, failing platforms.
/** @typedef {import('../../answers.ts').Stats} Stats */
import { formatZone } from '/console/activity/period.js';
import { html, useMemo } from '/console/html.js';
import { PlotPart } from '/console/overview/plot-part.js';
import { CALLS, DECISIONS } from '/console/overview/series.js';
import { Choice } from '/console/shell/choice.js';
import { Demo } from '/console/shell/demo.js';
import { formatDuration } from '/console/shell/duration.js';
import { applyFilters } from '/console/shell/filters.js';
import { Empty, Failed, Loading, useLoaded } from '/console/shell/loaded.js';
import { Link } from '/console/shell/router.js';
import { exactly } from '/console/shell/time.js';
import { visibleLine } from '/console/visible.js';

const INTERVAL_MS = 30_000;
/** The default range. */
const DEFAULT_RANGE = 'week';

const RANGES = new Map([
  ['day', 'Last 24 hours, by hour'],
  ['week', 'Last 7 days, by hour'],
  ['month', 'Last 30 days, by day'],
  ['year', 'Last 52 weeks, by week'],
]);

/** @param {{ place: URL }} props */
export function OverviewPage({ place }) {
  const asked = place.searchParams.get('range') ?? '';
  const range = RANGES.has(asked) ? asked : DEFAULT_RANGE;
  const zone = useMemo(() => new URLSearchParams({ zone: Intl.DateTimeFormat().resolvedOptions().timeZone }), []);
  const path = /** @type {const} */ (`/owner/stats?range=${range}&${zone}`);
  const { answer: stats, error, reload } = useLoaded(path, INTERVAL_MS);
  return html`
    <div class="page-head">
      <h1>Overview</h1>
      <div class="filter">
        <${Choice} id="range" label="Time" sorted=${false} options=${RANGES} chosen=${range} choose=${(/** @type {string} */ chosen) => applyFilters('/console/overview', { range: chosen })} />
      </div>
    </div>
    ${error && html`<${Failed} error=${error} again=${reload} />`}
    ${!stats && !error && html`<${Loading} />`}
    ${stats && isEmpty(stats) && html`<${Nothing} counting=${stats.counted_until === null} reload=${reload} />`}
    ${stats && !isEmpty(stats) && html`<${Numbers} stats=${stats} />`}
  `;
}

/** @param {Stats} stats */
const isEmpty = ({ totals, decisions }) => totals.calls === 0 && decisions.count === 0;

/** @param {{ stats: Stats }} props */
function Numbers({ stats }) {
  return html`<div class="overview stack">
    <${Figures} stats=${stats} />
    <${PlotPart} id="calls" title="Calls" stats=${stats} series=${CALLS} />
    ${stats.decisions.count > 0 && html`<${PlotPart} id="decisions" title="Time to decision" stats=${stats} series=${DECISIONS} />`}
    <div class="halves">
      <${Agents} stats=${stats} />
      <${Platforms} stats=${stats} />
    </div>
    <p class="small quiet" id="as-of">As of ${exactly(stats.until)}. Times in ${formatZone()}.${
      stats.counted_until !== null && stats.counted_until < stats.until
        ? ` Very many calls are new: these are counted up to ${exactly(stats.counted_until)}.`
        : ''
    }</p>
  </div>`;
}

/** @param {{ counting: boolean, reload: () => unknown }} props */
const Nothing = ({ counting, reload }) =>
  counting
    ? html`<${Empty} title="Recorded calls are being counted"><p>The first count takes some minutes. It runs in small steps, so that it delays no call.</p><//>`
    : html`<${Empty} title="No calls in this time">
        <p>Here you see how many calls your agents make, how many wait for a person or are refused, how long decisions take, and which platforms fail.</p>
        <p><${Link} to="/console/agents">See your agents<//>, or choose a longer time above.</p>
        <${Demo} shown=${reload} />
      <//>`;

// Numbers without a plot: totals, the busiest agents, the failing platforms.
/** The period of the activity page that matches the range. @type {Readonly<Record<string, string>>} */
const TIMES = { day: '24h', week: '7d', month: '30d' };

/** @param {Stats} stats @param {Record<string, string>} more */
const activity = ({ range }, more) =>
  `/console/activity?${new URLSearchParams({ ...(TIMES[range] && { time: TIMES[range] }), ...more })}`;

const percent = (/** @type {number} */ part, /** @type {number} */ whole) =>
  whole === 0 ? '–' : (part / whole).toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** @param {{ stats: Stats }} props */
function Figures({ stats }) {
  const { totals, decisions } = stats;
  const figures = [
    ['Calls', totals.calls.toLocaleString(), activity(stats, { result: 'action' })],
    ['Held', totals.held.toLocaleString(), activity(stats, { result: 'held' })],
    ['Refused', totals.refused.toLocaleString(), undefined],
    ['Failed', totals.errored.toLocaleString(), undefined],
  ];
  return html`<dl class="figures">
    ${figures.map(([name, value, to]) => html`<div class="sheet figure"><dt class="small quiet">${name}</dt><dd>${to ? html`<${Link} to=${to}>${value}<//>` : value}</dd></div>`)}
    <div class="sheet figure" id="time-to-decision"><dt class="small quiet">Time to decision</dt>
      <dd>${decisions.p50_seconds === null ? '–' : formatDuration(decisions.p50_seconds * 1000)}
      ${decisions.p90_seconds !== null && html`<span class="small quiet">nine in ten within ${formatDuration(decisions.p90_seconds * 1000)}, of ${decisions.sampled ? 'the newest ' : ''}${decisions.count.toLocaleString()} decided</span>`}</dd></div>
  </dl>`;
}

/** @param {{ stats: Stats }} props */
const Agents = ({ stats }) => html`<section class="sheet part" id="busiest" aria-label="Busiest agents">
  <h2>Busiest agents</h2>
  ${
    stats.agents.length === 0
      ? html`<p class="quiet">None made a call.</p>`
      : html`<div class="scroll" tabindex="0" role="region" aria-label="Busiest agents, the numbers"><table>
        <thead><tr><th scope="col">Agent</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Held</th><th scope="col" class="number">Refused</th><th scope="col" class="number">Failed</th></tr></thead>
        <tbody>${stats.agents.map(
          ({ agent_id, name, calls, held, refused, errored }) => html`<tr key=${agent_id}>
            <th scope="row" class="theirs"><${Link} to=${activity(stats, { agent: agent_id })}>${visibleLine(name ?? agent_id)}<//></th>
            ${[calls, held, refused, errored].map((value) => html`<td class="number">${value.toLocaleString()}</td>`)}
          </tr>`,
        )}</tbody>
      </table></div>`
  }
  ${stats.range === 'year' && html`<p class="small quiet">Of the last 30 days.</p>`}
</section>`;

/** @param {{ stats: Stats }} props */
const Platforms = ({ stats }) => html`<section class="sheet part" id="failing" aria-label="Failing platforms">
  <h2>Failing platforms</h2>
  ${
    stats.platforms.length === 0
      ? html`<p class="quiet">No call was sent to a platform.</p>`
      : html`<div class="scroll" tabindex="0" role="region" aria-label="Failing platforms, the numbers"><table>
        <thead><tr><th scope="col">Platform</th><th scope="col" class="number">Sent</th><th scope="col" class="number">Failed</th><th scope="col" class="number">Share</th></tr></thead>
        <tbody>${stats.platforms.map(
          ({ platform, sent, failed }) => html`<tr key=${platform}>
            <th scope="row" class="theirs"><${Link} to=${activity(stats, { platform })}>${visibleLine(platform)}<//></th>
            <td class="number">${sent.toLocaleString()}</td><td class="number" data-failing=${failed > 0}>${failed.toLocaleString()}</td><td class="number">${percent(failed, sent)}</td>
          </tr>`,
        )}</tbody>
      </table></div>`
  }
</section>`;
