/** Parses times from outside: date-time of RFC 3339, section 5.6. */
import { z } from 'zod';
import type { Instant } from '../policy/facts.ts';

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/i;
const DAY_MS = 86_400_000;

/**
 * Parses a date-time into milliseconds since the epoch; undefined when it is invalid (a 30th of February, a missing offset). `t` and `z`
 * may be lower case (section 5.6). A leap second, which epoch time lacks, becomes the moment after it; it must be at the end of a month in
 * UTC (section 5.7).
 */
export function parseDateTime(text: string): Instant | undefined {
  const [, year, month, day, second] = DATE_TIME.exec(text) ?? [];
  if (year === undefined) return undefined;
  // JavaScript reads the 30th of February as the 2nd of March, and the years 0 to 99 as 1900 to 1999.
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  // With more than nine fractional digits V8 reads `.0123456789` as 123 ms.
  const upper = text.toUpperCase().replace(/(\.\d{3})\d+/, '$1');
  if (second !== '60') return Date.parse(upper);
  const after = Math.floor(Date.parse(upper.replace(':60', ':59')) / 1000) * 1000 + 1000;
  return after % DAY_MS === 0 && new Date(after).getUTCDate() === 1 ? after : undefined;
}

/** A text that `parseDateTime` accepts. */
export const DateTime = z
  .string()
  .max(64)
  .refine((text) => parseDateTime(text) !== undefined, 'must be a date and time as in RFC 3339: 2026-01-31T12:00:00Z')
  .meta({ format: 'date-time' });
