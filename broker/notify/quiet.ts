/** Quiet hours: computes until when nothing is sent. */
import { DAYS, type QuietHours } from '../config-file/channels.ts';
import type { Instant } from '../policy/facts.ts';

const MINUTE_MS = 60_000;
const DAY_MINUTES = 24 * 60;
/** Limit of adjacent quiet periods, such as whole days. Nothing is held back longer than that. */
const MOST_IN_A_ROW = 8;

const minutes = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

/** Returns day of the week (0 is Monday) and minute of the day in the time zone. */
function localTime(at: Instant, zone: string): { day: number; minute: number } {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  });
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const day = DAYS.indexOf((parts.weekday ?? '').toLowerCase() as (typeof DAYS)[number]);
  return { day, minute: Number(parts.hour) * 60 + Number(parts.minute) };
}

/** Returns the minutes until the end of the current quiet period; undefined when there is none. */
function remaining({ day, minute }: { day: number; minute: number }, quiet: QuietHours): number | undefined {
  const [from, to] = [minutes(quiet.from), minutes(quiet.to)];
  const begins = (which: number) => quiet.days === undefined || quiet.days.includes(DAYS[(which + 7) % 7] ?? 'mon');
  const overnight = to <= from;
  if (minute >= from && (overnight || minute < to) && begins(day)) return to - minute + (overnight ? DAY_MINUTES : 0);
  if (overnight && minute < to && begins(day - 1)) return to - minute;
  return undefined;
}

/** Returns when the current quiet hours end; undefined when `now` is outside of them. */
export function quietUntil(quiet: QuietHours | undefined, now: Instant): Instant | undefined {
  if (!quiet) return undefined;
  let at = now;
  for (let turn = 0; turn < MOST_IN_A_ROW; turn++) {
    const left = remaining(localTime(at, quiet.zone), quiet);
    if (left === undefined) break;
    const end = Math.floor(at / MINUTE_MS) * MINUTE_MS + left * MINUTE_MS;
    // Corrects the end when a daylight saving change lies in between.
    const off = (localTime(end, quiet.zone).minute - minutes(quiet.to) + DAY_MINUTES * 1.5) % DAY_MINUTES;
    at = end - (off - DAY_MINUTES / 2) * MINUTE_MS;
  }
  return at === now ? undefined : at;
}
