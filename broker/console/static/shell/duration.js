// Durations in words.
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Formats a duration in its two largest units at most: `40 s`, `12 min`, `3 h 20 min`, `23 h`, `2 days`.
 *
 * @param {number} ms
 */
export function formatDuration(ms) {
  if (ms < MINUTE) return `${Math.max(0, Math.round(ms / 1000))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms >= 2 * DAY) return `${Math.floor(ms / DAY)} days`;
  const hours = Math.floor(ms / HOUR);
  const minutes = Math.floor((ms % HOUR) / MINUTE);
  return hours < 10 && minutes > 0 ? `${hours} h ${minutes} min` : `${hours} h`;
}

/**
 * Formats a duration in milliseconds as time ago.
 *
 * @param {number} ms
 */
export const formatAgo = (ms) => (ms < 10_000 ? 'just now' : `${formatDuration(ms)} ago`);
