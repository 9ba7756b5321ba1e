// Definitions of the plots: names, values of a bucket, and line styles. Lines differ by their dashes, too, not by colour alone.
/** @typedef {import('../../answers.ts').Stats} Stats */
import { formatDuration } from '/console/shell/duration.js';

/** @typedef {Stats['buckets'][number]} Bucket */

/**
 * `color`: a custom property of overview.css. `dash`: lengths in pixels. `value`: null when the bucket has no value.
 *
 * @typedef {{ name: string, color: string, dash: number[], value: (bucket: Bucket) => number | null }} Line
 */

/** `words` formats a value. `room`: width of the axis labels, in pixels. `steps`: allowed distances between axis labels. @typedef {{ lines: readonly Line[], words: (value: number) => string, room: number, steps?: number[] }} Series */

/** @type {Series} */
export const CALLS = {
  words: (value) => value.toLocaleString(),
  room: 46,
  lines: [
    { name: 'Calls', color: '--plot-calls', dash: [], value: ({ calls }) => calls },
    { name: 'Held', color: '--plot-held', dash: [8, 4], value: ({ held }) => held },
    { name: 'Refused', color: '--plot-refused', dash: [2, 3], value: ({ refused }) => refused },
    { name: 'Failed', color: '--plot-failed', dash: [10, 3, 2, 3], value: ({ errored }) => errored },
  ],
};

/** @type {Series} */
export const DECISIONS = {
  words: (value) => formatDuration(value * 1000),
  room: 80,
  // Round seconds, minutes, hours and days.
  steps: [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 604_800],
  lines: [
    { name: 'Half within (p50)', color: '--plot-calls', dash: [], value: (bucket) => bucket.decision_p50_seconds },
    {
      name: 'Nine in ten within (p90)',
      color: '--plot-held',
      dash: [8, 4],
      value: (bucket) => bucket.decision_p90_seconds,
    },
  ],
};
