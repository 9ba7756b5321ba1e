// The remaining time of a held call.
/** @typedef {import('../../answers.ts').HeldCall} HeldCall */
/** @typedef {import('/console/approve/held.js').Waits} Waits */
import { html, useEffect, useMemo, useState } from '/console/html.js';

/**
 * Returns the remaining whole seconds of a held call, updated every second; undefined for a call that no longer waits.
 *
 * @param {HeldCall | Waits} held
 */
export function useSecondsLeft(held) {
  // Counted from when the response arrived: the clock of a phone may be wrong.
  const end = useMemo(
    () => (held?.expires_in_seconds == null ? undefined : Date.now() + held.expires_in_seconds * 1000),
    [held?.expires_in_seconds, held?.request_hash],
  );
  const left = () => (end === undefined ? undefined : Math.max(0, Math.ceil((end - Date.now()) / 1000)));
  const [seconds, setSeconds] = useState(left);
  useEffect(() => {
    setSeconds(left());
    if (end === undefined) return undefined;
    const timer = setInterval(() => setSeconds(left()), 1_000);
    return () => clearInterval(timer);
  }, [end]);
  return seconds;
}

/**
 * Formats a duration: `23 h 59 min`, `4 min 10 s`, `9 s`.
 *
 * @param {number} seconds
 */
function spelled(seconds) {
  const hours = Math.floor(seconds / 3600);
  const minutes = Math.floor(seconds / 60) % 60;
  if (hours > 0) return `${hours} h ${minutes} min`;
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

/**
 * The remaining time of a held call, as a badge.
 *
 * @param {{ held: HeldCall | Waits }} props
 */
export function TimeLeft({ held }) {
  const seconds = useSecondsLeft(held);
  if (seconds === undefined) return null;
  const kind = seconds === 0 ? 'bad' : seconds < 300 ? 'wait' : undefined;
  return html`<span class="badge time-left" data-kind=${kind} role="timer">
    ${seconds === 0 ? 'Expired' : `${spelled(seconds)} left`}
  </span>`;
}

/** Formats a time as `today, 14:32`, or with its date. */
export const formatMoment = (/** @type {string} */ moment) => {
  const date = new Date(moment);
  const time = date.toLocaleTimeString([], { timeStyle: 'short' });
  return date.toDateString() === new Date().toDateString()
    ? `today, ${time}`
    : `${date.toLocaleDateString([], { dateStyle: 'medium' })}, ${time}`;
};
