/** Hours, days and weeks of a range, for hourly counters. */
import type { Instant } from '../../policy/facts.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** 1970-01-05 was a Monday. */
const FIRST_MONDAY = 4 * DAY_MS;

export type Step = 'hour' | 'day' | 'week';

/** `starts`: in order. `startOf`: returns the bucket of a time; undefined: it is in none. */
export type Buckets = { starts: Instant[]; startOf: (at: Instant) => Instant | undefined };

/**
 * Returns the buckets that overlap a range, the first one complete. Days are those of a time zone (IANA), rounded to the hour: in a zone with a
 * half-hour offset, days are shifted by half an hour. Weeks begin on Monday in UTC.
 */
export function bucketsOf(step: Step, zone: string, { since, until }: { since: Instant; until: Instant }): Buckets {
  if (step === 'day') return daysOf(zone, since, until);
  const [length, origin] = step === 'hour' ? [HOUR_MS, 0] : [WEEK_MS, FIRST_MONDAY];
  const floor = (at: Instant) => at - ((((at - origin) % length) + length) % length);
  const starts: Instant[] = [];
  // The range ends within the last bucket, and begins a whole number of buckets earlier.
  for (let at = floor(since) + length; at <= until; at += length) starts.push(at);
  const known = new Set(starts);
  return { starts, startOf: (at) => (known.has(floor(at)) ? floor(at) : undefined) };
}

function daysOf(zone: string, since: Instant, until: Instant): Buckets {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });
  const byHour = new Map<Instant, Instant>();
  const starts: Instant[] = [];
  let day = format.format(since);
  const first = day;
  for (let hour = since - (since % HOUR_MS); hour <= until; hour += HOUR_MS) {
    const of = format.format(hour);
    if (of === first) continue;
    if (of !== day) starts.push(hour);
    day = of;
    byHour.set(hour, starts.at(-1) as Instant);
  }
  return { starts, startOf: (at) => byHour.get(at - (at % HOUR_MS)) };
}

/** Whether there is a time zone of this name. */
export function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
