// Draws a plot with uPlot. Only pages with plots load this module.
/** @typedef {import('/console/overview/series.js').Series} Series */
/** @typedef {import('/console/overview/series.js').Stats} Stats */
import UPlot from '/console/vendor/uplot.js';

const HEIGHT = 220;
const STYLE = '/console/vendor/uplot.css';

/**
 * Draws a plot that fills the element, and redraws it when the element's size or the colour scheme changes.
 *
 * @param {HTMLElement} box
 * @param {Stats} stats
 * @param {Series} series
 * @param {(at: number | undefined) => void} point receives the index of the bucket under the pointer
 * @returns {Promise<() => void>} a function that removes the plot
 */
export async function draw(box, { buckets }, series, point) {
  await styled();
  const data = /** @type {import('/console/vendor/uplot.js').AlignedData} */ ([
    buckets.map(({ at }) => Date.parse(at) / 1000),
    ...series.lines.map(({ value }) => buckets.map(value)),
  ]);
  /** @type {UPlot | undefined} */
  let plot;
  const make = () => {
    plot?.destroy();
    plot = new UPlot(options(box, series, point), data, box);
  };
  make();
  const schemes = matchMedia('(prefers-color-scheme: dark)');
  schemes.addEventListener('change', make);
  const sizes = new ResizeObserver(() => plot?.setSize({ width: widthOf(box), height: HEIGHT }));
  sizes.observe(box);
  return () => {
    schemes.removeEventListener('change', make);
    sizes.disconnect();
    plot?.destroy();
  };
}

/** @param {HTMLElement} box */
const widthOf = (box) => Math.max(200, Math.floor(box.clientWidth));

/**
 * @param {HTMLElement} box
 * @param {Series} series
 * @param {(at: number | undefined) => void} point
 * @returns {import('/console/vendor/uplot.js').Options}
 */
function options(box, { lines, words, room, steps }, point) {
  const color = colorsOf(box);
  const axis = {
    stroke: color('--quiet'),
    font: '12px system-ui, sans-serif',
    grid: { stroke: color('--line'), width: 1 },
    ticks: { stroke: color('--line'), width: 1 },
  };
  return {
    width: widthOf(box),
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false },
    scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, (most ?? 1) * 1.08)] } },
    axes: [
      { ...axis, size: 30, values: (_plot, moments, _axis, _space, step) => moments.map((one) => tickOf(one, step)) },
      {
        ...axis,
        size: room,
        ...(steps && { incrs: steps }),
        values: (_plot, values) => values.map((one) => (Number.isInteger(one) ? words(one) : '')),
      },
    ],
    series: [
      {},
      ...lines.map(({ name, color: of, dash }) => ({
        label: name,
        stroke: color(of),
        width: 2,
        dash,
        spanGaps: true,
        points: { size: 5, ...(steps && { show: true }) },
      })),
    ],
    hooks: { setCursor: [(plot) => point(plot.cursor.idx ?? undefined)] },
  };
}

/** Formats a tick of the time axis: the day at midnight and for steps of a day or more, otherwise the time. @param {number} seconds @param {number} step */
function tickOf(seconds, step) {
  const at = new Date(seconds * 1000);
  const isDay = step >= 86_400 || (at.getHours() === 0 && at.getMinutes() === 0);
  return isDay
    ? at.toLocaleDateString(undefined, { month: 'short', day: 'numeric' })
    : at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hour12: false });
}

/** Returns the page's current colours in a form that a canvas accepts. @param {HTMLElement} box */
function colorsOf(box) {
  const probe = document.createElement('span');
  box.append(probe);
  const found = (/** @type {string} */ name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const known = Object.fromEntries(
    ['--quiet', '--line', '--plot-calls', '--plot-held', '--plot-refused', '--plot-failed'].map((name) => [
      name,
      found(name),
    ]),
  );
  probe.remove();
  return (/** @type {string} */ name) => known[name] ?? 'currentcolor';
}

/** Loads the library's style sheet, once. @returns {Promise<void>} */
function styled() {
  if (document.querySelector(`link[href="${STYLE}"]`)) return Promise.resolve();
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = STYLE;
  const loaded = new Promise((done) => {
    link.addEventListener('load', () => done(undefined));
    link.addEventListener('error', () => done(undefined));
  });
  document.head.append(link);
  return /** @type {Promise<void>} */ (loaded);
}
