// The period of a filter: a duration until now, or days in the browser's time zone.

const HOUR_MS = 3_600_000;

/** By the value in the address. @type {Readonly<Record<string, { words: string, ms: number }>>} */
const LAST = {
  '1h': { words: 'Last hour', ms: HOUR_MS },
  '24h': { words: 'Last 24 hours', ms: 24 * HOUR_MS },
  '7d': { words: 'Last 7 days', ms: 7 * 24 * HOUR_MS },
  '30d': { words: 'Last 30 days', ms: 30 * 24 * HOUR_MS },
};

/** The value for a range of days chosen one by one. */
export const DAYS = 'days';

export const OF_TIMES = new Map([
  ...Object.entries(LAST).map(([value, { words }]) => /** @type {const} */ ([value, words])),
  /** @type {const} */ ([DAYS, 'Days…']),
]);

/**
 * Returns the start of a day, or of the day after it; undefined when the text is not a date.
 *
 * @param {string} day
 */
function startOf(day, later = 0) {
  const [, year = '', month = '', date = ''] = /^(\d{4})-(\d{2})-(\d{2})$/.exec(day) ?? [];
  const start = new Date(Number(year), Number(month) - 1, Number(date) + later);
  return year === '' || Number.isNaN(start.getTime()) ? undefined : start.toISOString();
}

/** `time`: one of OF_TIMES, or ''; `from`, `to`: days as `2026-11-21`. @typedef {{ time: string, from: string, to: string }} Period */

/** Whether the period is a range of days: `from` or `to` in the address is enough, even without `time=days`. @param {Period} period */
export const isOfDays = ({ time, from, to }) => time === DAYS || (LAST[time] === undefined && `${from}${to}` !== '');

/**
 * Returns the period as times for the owner API; undefined: unbounded.
 *
 * @param {Period} period
 * @param {number} now milliseconds
 */
export function boundsOf(period, now) {
  const last = LAST[period.time];
  if (last) return { since: new Date(now - last.ms).toISOString(), until: undefined };
  return { since: startOf(period.from), until: startOf(period.to, 1) };
}

/** `Europe/Berlin (UTC+1)`: the time zone of the shown days and times. */
export function formatZone(at = new Date()) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const minutes = -at.getTimezoneOffset();
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  const offset = `UTC${minutes < 0 ? '−' : '+'}${hours}${rest ? `:${String(rest).padStart(2, '0')}` : ''}`;
  return timeZone === 'UTC' ? 'UTC' : `${timeZone} (${offset})`;
}
