// Times in words.
import { html, useEffect, useState } from '/console/html.js';
import { formatAgo, formatDuration } from '/console/shell/duration.js';

const MINUTE = 60_000;

/**
 * Returns the current time, updated at this interval.
 *
 * @param {number} everyMs
 */
export function useNow(everyMs) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

export const day = (/** @type {string} */ at) => new Date(at).toLocaleDateString([], { dateStyle: 'medium' });

export const moment = (/** @type {string} */ at) =>
  new Date(at).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });

/** Formats a time with its time zone, for a record. */
export const exactly = (/** @type {string} */ at) =>
  new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });

/**
 * The time ago, with the exact time as a tooltip.
 *
 * @param {{ at: string }} props
 */
export function Ago({ at }) {
  const now = useNow(15_000);
  return html`<time datetime=${at} title=${exactly(at)}>
    ${formatAgo(now - Date.parse(at))}
  </time>`;
}

const SOON_MS = 10 * MINUTE;
/** With more time left, the remaining time is not shown in the list: an open entry shows its deadline. */
const SHOWN_BELOW_MS = 60 * MINUTE;

/**
 * The remaining time to decide, in the last hour. `deadline`: milliseconds by this machine's clock.
 *
 * @param {{ deadline: number }} props
 */
export function Left({ deadline }) {
  const [close, setClose] = useState(deadline - Date.now() < 2 * MINUTE);
  const now = useNow(close ? 1_000 : 15_000);
  const left = deadline - now;
  if (!close && left < 2 * MINUTE) setClose(true);
  if (left >= SHOWN_BELOW_MS) return null;
  return html`<span class="left" data-kind=${left < SOON_MS ? 'wait' : ''}>
    ${left > 0 ? `${formatDuration(left)} left` : 'expired'}
  </span>`;
}
