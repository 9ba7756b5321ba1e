// One plot with its legend, the values under the pointer, and the same numbers as a table.
/** @typedef {import('/console/overview/series.js').Series} Series */
/** @typedef {import('/console/overview/series.js').Stats} Stats */
import { html, useEffect, useRef, useState } from '/console/html.js';

/** @param {{ id: string, title: string, stats: Stats, series: Series }} props */
export function PlotPart({ id, title, stats, series }) {
  const [at, setAt] = useState(/** @type {number | undefined} */ (undefined));
  const [failed, setFailed] = useState(false);
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    let isOver = false;
    let leave = () => {};
    // Only pages with plots load the library.
    import('/console/overview/plot.js')
      .then(({ draw }) => (isOver || !box.current ? undefined : draw(box.current, stats, series, setAt)))
      .then(
        (end) => {
          if (isOver) end?.();
          else leave = end ?? leave;
        },
        () => !isOver && setFailed(true),
      );
    return () => {
      isOver = true;
      leave();
    };
  }, [stats, series]);
  const bucket = at === undefined ? undefined : stats.buckets[at];
  return html`<section class="sheet part plot-part" id=${id} aria-label=${title}>
    <h2>${title}</h2>
    <ul role="list" class="legend small">
      ${series.lines.map(({ name, color, dash }) => html`<li><${Sample} color=${color} dash=${dash} />${name}</li>`)}
    </ul>
    ${
      failed
        ? html`<p class="quiet small">The plot could not be loaded. The numbers are in the table.</p>`
        : html`<div class="plot" ref=${box} role="img" aria-label=${`${title} over time, as lines. The table below has the same numbers.`}></div>`
    }
    <p class="small quiet readout" aria-hidden="true">${bucket ? readout(bucket, stats, series) : 'Point at the plot to read its values.'}</p>
    <details class="numbers small">
      <summary>The numbers as a table</summary>
      <div class="scroll" tabindex="0" role="region" aria-label=${`${title}, the numbers`}>
        <table>
          <thead><tr><th scope="col">From</th>${series.lines.map(({ name }) => html`<th scope="col" class="number">${name}</th>`)}</tr></thead>
          <tbody>${stats.buckets.toReversed().map((one) => html`<tr key=${one.at}><th scope="row">${momentOf(one.at, stats.step)}</th>${series.lines.map(({ value }) => html`<td class="number">${wordsOf(value(one), series)}</td>`)}</tr>`)}</tbody>
        </table>
      </div>
    </details>
  </section>`;
}

/** @param {import('/console/overview/series.js').Bucket} bucket @param {Stats} stats @param {Series} series */
const readout = (bucket, { step }, series) =>
  `${momentOf(bucket.at, step)}: ${series.lines.map(({ name, value }) => `${name} ${wordsOf(value(bucket), series)}`).join(', ')}`;

/** @param {number | null} value @param {Series} series */
const wordsOf = (value, { words }) => (value === null ? '–' : words(value));

/** @param {string} at @param {Stats['step']} step */
const momentOf = (at, step) =>
  new Date(at).toLocaleString(
    undefined,
    step === 'hour' ? { dateStyle: 'medium', timeStyle: 'short' } : { dateStyle: 'medium' },
  );

/** A sample of a line, for the legend. @param {{ color: string, dash: number[] }} props */
const Sample = ({ color, dash }) =>
  html`<svg class="sample" data-color=${color} width="28" height="8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" stroke-width="2.5" stroke-dasharray=${dash.join(' ')} /></svg>`;
