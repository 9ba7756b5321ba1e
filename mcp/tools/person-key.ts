/** Distinguishes people in the deduplication of calls, so that identical calls for two people are two calls. */
import { createHash } from 'node:crypto';
import type { Caller } from '../client/action.ts';

/** Returns the same text for the same person whenever they are named, and never the same for two people. */
export type PersonKey = (caller: Caller) => string | Promise<string>;

/** Claims that differ between two assertions about one person. */
const OF_ONE_ASSERTION: readonly string[] = ['iat', 'exp', 'nbf', 'jti'];

/**
 * For a process that cannot verify assertions: uses all claims that may be about the person, because only the broker can tell
 * which claim names them. An assertion without claims equals only itself. The key distinguishes people, and grants nothing.
 */
export function personKeyAsNamed(caller: Caller): string {
  if ('source' in caller) return JSON.stringify(['id', caller.source, caller.id]);
  const claims = claimsOf(caller.assertion);
  return claims === undefined ? textKey(caller.assertion) : JSON.stringify(['jwt', claims]);
}

/** The key of a caller who could not be identified. */
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
