// The overview page, with statistics of calls: over time, time to decision, busiest agents, failing platforms.
/** @typedef {import('../../answers.ts').Stats} Stats */

import { zoneInWords } from '/console/activity/period.js';
import { html, useMemo } from '/console/html.js';
import { Agents, Figures, Platforms } from '/console/overview/figures.js';
import { PlotPart } from '/console/overview/plot-part.js';
import { CALLS, DECISIONS } from '/console/overview/series.js';
import { Choice } from '/console/shell/choice.js';
import { Demo } from '/console/shell/demo.js';
import { Empty, Failed, Loading } from '/console/shell/empty.js';
import { applyFilters } from '/console/shell/filters.js';
import { Link } from '/console/shell/router.js';
import { exactly } from '/console/shell/time.js';
import { useLoaded } from '/console/shell/use-loaded.js';

const EVERY_MS = 30_000;
/** The default range. */
const USUAL = 'week';

const RANGES = new Map([
  ['day', 'Last 24 hours, by hour'],
  ['week', 'Last 7 days, by hour'],
  ['month', 'Last 30 days, by day'],
  ['year', 'Last 52 weeks, by week'],
]);

/** @param {{ place: URL }} props */
export function OverviewPage({ place }) {
  const asked = place.searchParams.get('range') ?? '';
  const range = RANGES.has(asked) ? asked : USUAL;
  const zone = useMemo(() => new URLSearchParams({ zone: Intl.DateTimeFormat().resolvedOptions().timeZone }), []);
  const path = /** @type {const} */ (`/owner/stats?range=${range}&${zone}`);
  const { answer: stats, error, reload } = useLoaded(path, EVERY_MS);
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
    <p class="small quiet" id="as-of">As of ${exactly(stats.until)}. Times in ${zoneInWords()}.${
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
