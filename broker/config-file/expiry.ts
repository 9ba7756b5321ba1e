/** `expires` of a grant: a time span that begins when it is applied, or a moment. */
import type { Instant } from '../policy/facts.ts';
import { spanMs } from '../policy/span.ts';
import { parseDateTime } from '../wire/date-time.ts';

export type Expiry = { kind: 'after'; milliseconds: number } | { kind: 'at'; moment: Instant };

const MAX_SPAN_MS = 3650 * 86_400_000;

/** The pattern for editors; `parseExpiry` is stricter. */
export const EXPIRY_PATTERN =
  /^(?:[1-9][0-9]{0,5}[mhd]|\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2}))$/;

export const EXPIRY_FORMS =
  'write a time span such as "30d", "12h" or "45m" (at most 3650d), or a moment such as "2027-01-31T18:00:00Z"';

/** Parses an expiry; undefined for an invalid text (a 30th of February, a span of eleven years). */
export function parseExpiry(text: string): Expiry | undefined {
  const milliseconds = spanMs(text);
  if (milliseconds !== undefined) return milliseconds <= MAX_SPAN_MS ? { kind: 'after', milliseconds } : undefined;
  const moment = parseDateTime(text);
  return moment === undefined ? undefined : { kind: 'at', moment };
}

/** Returns when a span that ends at `end` began; undefined when the text is not a span. */
export function beginOfSpan(text: string, end: Instant): Instant | undefined {
  const expiry = parseExpiry(text);
  return expiry?.kind === 'after' ? end - expiry.milliseconds : undefined;
}

export type StoredExpiry = { expires_at: Instant | null; expires_text: string | null };

/**
 * Returns the expiry for a grant. The stored one is kept when the file still says the same: the same text for a span, the same
 * moment for a moment; so a span runs from the first time that it was applied.
 */
export function expiryOf(text: string | undefined, stored: StoredExpiry | undefined, now: Instant): StoredExpiry {
  if (text === undefined) return { expires_at: null, expires_text: null };
  const expiry = parseExpiry(text);
  if (expiry === undefined) throw new Error(`An expiry was not checked: ${EXPIRY_FORMS}.`);
  const isSame = expiry.kind === 'after' ? stored?.expires_text === text : stored?.expires_at === expiry.moment;
  // Returns only these two columns: callers pass whole rows, and spread the result over the file's values.
  if (stored && isSame) return { expires_at: stored.expires_at, expires_text: stored.expires_text };
  const expiresAt = expiry.kind === 'after' ? now + expiry.milliseconds : expiry.moment;
  return { expires_at: expiresAt, expires_text: text };
}
