/** Quiet hours: computes until when nothing is sent. */
import { DAYS, type QuietHours } from '../config-file/channels.ts';
import type { Instant } from '../policy/facts.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
/** No clock is set forward by more than this at a daylight saving change. */
const MAX_CHANGE_MINUTES = 60;
/** Limit of adjacent quiet periods, such as whole days. */
const MAX_DURATION_MS = 8 * DAY_MINUTES * MINUTE_MS;

const minutes = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

type LocalTime = { day: number; minute: number };

/** Returns a function that computes the day of the week (0 is Monday) and the minute of the day in the time zone. */
function clockOf(zone: string): (at: Instant) => LocalTime {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  return (at) => {
    const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
    const day = DAYS.indexOf((parts.weekday ?? '').toLowerCase() as (typeof DAYS)[number]);
    return { day, minute: Number(parts.hour) * 60 + Number(parts.minute) };
  };
}

/** Returns the minutes until the end of the current quiet period; undefined when there is none. */
function remaining({ day, minute }: LocalTime, quiet: QuietHours): number | undefined {
  const [from, to] = [minutes(quiet.from), minutes(quiet.to)];
  const begins = (which: number) => quiet.days === undefined || quiet.days.includes(DAYS[(which + 7) % 7] ?? 'mon');
  const overnight = to <= from;
  if (minute >= from && (overnight || minute < to) && begins(day)) return to - minute + (overnight ? DAY_MINUTES : 0);
  if (overnight && minute < to && begins(day - 1)) return to - minute;
  return undefined;
}

/**
 * Returns when the current quiet hours end: the first whole minute after `now` that is not quiet, at most 8 days later; undefined when `now` is outside of
 * them. The result is never before `now`, also where a daylight saving change skips or repeats the end.
 */
export function quietUntil(quiet: QuietHours | undefined, now: Instant): Instant | undefined {
  if (!quiet) return undefined;
  const localTime = clockOf(quiet.zone);
  let at = now;
  let local = localTime(at);
  while (at - now < MAX_DURATION_MS) {
    const left = remaining(local, quiet);
    if (left === undefined) break;
    const from = Math.floor(at / MINUTE_MS) * MINUTE_MS;
    const after = (pause: number) => from + pause * MINUTE_MS;
    const isRegular = localTime(after(left)).minute === (local.minute + left) % DAY_MINUTES;
    // Around a change of the clock the end is searched by the minute.
    at = after(isRegular ? left : Math.max(1, left - MAX_CHANGE_MINUTES));
    local = localTime(at);
  }
  return at === now ? undefined : at;
}
