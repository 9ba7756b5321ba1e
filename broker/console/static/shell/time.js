// Times as people say them.
import { html, useEffect, useState } from '/console/html.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * The moment, looked at again every so often.
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

/**
 * A length of time in its two largest units at most: `40 s`, `12 min`, `3 h 20 min`, `23 h`, `2 days`.
 *
 * @param {number} ms
 */
export function inWords(ms) {
  if (ms < MINUTE) return `${Math.max(0, Math.round(ms / 1000))} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms >= 2 * DAY) return `${Math.floor(ms / DAY)} days`;
  const hours = Math.floor(ms / HOUR);
  const minutes = Math.floor((ms % HOUR) / MINUTE);
  return hours < 10 && minutes > 0 ? `${hours} h ${minutes} min` : `${hours} h`;
}

/**
 * How long ago, with the exact moment for whoever points at it.
 *
 * @param {{ at: string }} props
 */
export function Ago({ at }) {
  const now = useNow(15_000);
  const passed = now - Date.parse(at);
  return html`<time datetime=${at} title=${new Date(at).toLocaleString()}>
    ${passed < 10_000 ? 'just now' : `${inWords(passed)} ago`}
  </time>`;
}

const SOON_MS = 10 * MINUTE;

/**
 * How long until nobody can decide any more. `deadline`: milliseconds by this machine's clock.
 *
 * @param {{ deadline: number }} props
 */
export function Left({ deadline }) {
  const [close, setClose] = useState(deadline - Date.now() < 2 * MINUTE);
  const now = useNow(close ? 1_000 : 15_000);
  const left = deadline - now;
  if (!close && left < 2 * MINUTE) setClose(true);
  return html`<span class="left" data-kind=${left < SOON_MS ? 'wait' : ''}>
    ${left > 0 ? `${inWords(left)} left` : 'time is over'}
  </span>`;
}
