// Numbers without a plot: totals, the busiest agents, the failing platforms.
/** @typedef {import('../../answers.ts').Stats} Stats */
import { html } from '/console/html.js';
import { inWords } from '/console/shell/duration.js';
import { Link } from '/console/shell/router.js';
import { visibleLine } from '/console/visible.js';

/** The period of the activity page that matches the range. @type {Readonly<Record<string, string>>} */
const TIMES = { day: '24h', week: '7d', month: '30d' };

/** @param {Stats} stats @param {Record<string, string>} more */
const activity = ({ range }, more) =>
  `/console/activity?${new URLSearchParams({ ...(TIMES[range] && { time: TIMES[range] }), ...more })}`;

const percent = (/** @type {number} */ part, /** @type {number} */ whole) =>
  whole === 0 ? '–' : (part / whole).toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 1 });

/** @param {{ stats: Stats }} props */
export function Figures({ stats }) {
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
      <dd>${decisions.p50_seconds === null ? '–' : inWords(decisions.p50_seconds * 1000)}
      ${decisions.p90_seconds !== null && html`<span class="small quiet">nine in ten within ${inWords(decisions.p90_seconds * 1000)}, of ${decisions.sampled ? 'the newest ' : ''}${decisions.count.toLocaleString()} decided</span>`}</dd></div>
  </dl>`;
}

/** @param {{ stats: Stats }} props */
export const Agents = ({ stats }) => html`<section class="sheet part" id="busiest" aria-label="Busiest agents">
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
export const Platforms = ({ stats }) => html`<section class="sheet part" id="failing" aria-label="Failing platforms">
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
