/** `expires` of a grant: a time span that begins when it is applied, or a moment. */
import type { Instant } from '../policy/facts.ts';
import { spanMs } from '../policy/span.ts';
import { parseDateTime } from '../wire/date-time.ts';

export type Expiry = { kind: 'after'; milliseconds: number } | { kind: 'at'; moment: Instant };

const LONGEST_SPAN = 3650 * 86_400_000;

/** What an editor checks by; `parseExpiry` looks closer. */
export const EXPIRY_PATTERN =
  /^(?:[1-9][0-9]{0,5}[mhd]|\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2}))$/;

export const EXPIRY_FORMS =
  'write a time span such as "30d", "12h" or "45m" (at most 3650d), or a moment such as "2027-01-31T18:00:00Z"';

/** Reads an expiry, or answers undefined for a text that is none (a 30th of February, a span of eleven years). */
export function parseExpiry(text: string): Expiry | undefined {
  const milliseconds = spanMs(text);
  if (milliseconds !== undefined) return milliseconds <= LONGEST_SPAN ? { kind: 'after', milliseconds } : undefined;
  const moment = parseDateTime(text);
  return moment === undefined ? undefined : { kind: 'at', moment };
}

/** When a span that ends at `end` began; undefined of a text that is no span. */
export function beginOfSpan(text: string, end: Instant): Instant | undefined {
  const expiry = parseExpiry(text);
  return expiry?.kind === 'after' ? end - expiry.milliseconds : undefined;
}

export type StoredExpiry = { expires_at: Instant | null; expires_text: string | null };

/**
 * The expiry that a grant gets. What the store has stays when the file still says the same: the same words for a span,
 * the same moment for a moment; so a span runs from the first time that it was applied.
 */
export function expiryOf(text: string | undefined, stored: StoredExpiry | undefined, now: Instant): StoredExpiry {
  if (text === undefined) return { expires_at: null, expires_text: null };
  const expiry = parseExpiry(text);
  if (expiry === undefined) throw new Error(`An expiry was not checked: ${EXPIRY_FORMS}.`);
  const isSame = expiry.kind === 'after' ? stored?.expires_text === text : stored?.expires_at === expiry.moment;
  // Only these two columns: callers hand in whole rows, and spread the answer over what the file says.
  if (stored && isSame) return { expires_at: stored.expires_at, expires_text: stored.expires_text };
  const expiresAt = expiry.kind === 'after' ? now + expiry.milliseconds : expiry.moment;
  return { expires_at: expiresAt, expires_text: text };
}
