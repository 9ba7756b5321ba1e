/** Tells people apart in what is remembered of calls, so that equal calls for two people are two calls. */
import { createHash } from 'node:crypto';
import type { Caller } from '../client/action.ts';

/** The same text for the same person, however often they are named, and never the same for two. */
export type PersonKey = (caller: Caller) => string | Promise<string>;

/** What differs between two assertions about one person. */
const OF_ONE_ASSERTION: readonly string[] = ['iat', 'exp', 'nbf', 'jti'];

/**
 * For whoever cannot verify assertions: by all that the assertion says that may be about the person, because only the broker knows
 * which claim names them. One without claims is nobody but itself. It tells people apart, and gives no right.
 */
export function personKeyAsNamed(caller: Caller): string {
  if ('source' in caller) return JSON.stringify(['id', caller.source, caller.id]);
  const claims = claimsOf(caller.assertion);
  return claims === undefined ? textKey(caller.assertion) : JSON.stringify(['jwt', claims]);
}

/** Of a caller whom nobody could identify. */
export const textKey = (text: string): string =>
  JSON.stringify(['text', createHash('sha256').update(text).digest('hex')]);

function claimsOf(assertion: string): [string, unknown][] | undefined {
  const [, payload = ''] = assertion.split('.');
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) return undefined;
  return Object.entries(claims)
    .filter(([name]) => !OF_ONE_ASSERTION.includes(name))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
