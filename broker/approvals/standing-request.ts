/**
 * The standing approval that an owner requests with an approval: how many similar calls it covers, for how long, and in which members they may
 * differ.
 */
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { Basis, Instant, JsonObject } from '../policy/facts.ts';
import type { Offered } from '../policy/free-members.ts';
import type { Free, StandingTerms } from '../policy/standing-terms.ts';
import { standingWords } from '../sentences/standing.ts';

const HOUR_MS = 3_600_000;
export const MAX_USES = 1_000;
/** Limits of validity: with an end, and for a session. The session limit is lower because the agent names its sessions itself. */
export const MAX_DURATION_MS = 30 * 24 * HOUR_MS;
export const MAX_SESSION_MS = 12 * HOUR_MS;

/** Exactly one of `until` (milliseconds), `forSeconds` and `session` is given. */
export type StandingRequest = {
  count: number;
  until?: Instant;
  forSeconds?: number;
  session?: true;
  free: readonly { member: string; atMost?: number }[];
};

/** `sentence`: the terms in words. */
export type CheckedStanding = { terms: StandingTerms; uses: number; expiresAt: Instant; sentence: string };

/** Returns the hash that a passkey's challenge is bound to, in addition to the held call. */
export const hashOfStanding = ({ count, until, forSeconds, session, free }: StandingRequest): string =>
  sha256Hex(
    canonicalJson({
      count,
      until: until ?? null,
      for_seconds: forSeconds ?? null,
      session: session ?? false,
      free: free
        .map(({ member, atMost }) => ({ member, at_most: atMost ?? null }))
        .sort((a, b) => (a.member < b.member ? -1 : 1)),
    } as JsonObject),
  );

/** Returns the terms, never wider than what is offered, or an error text that says what cannot be granted. */
export function checkStanding(
  asked: StandingRequest,
  { basis, members }: { basis: Basis; members: readonly Offered[] },
  now: Instant,
): CheckedStanding | string {
  const { count, session = false } = asked;
  if ([asked.until, asked.forSeconds, asked.session].filter((one) => one !== undefined).length !== 1)
    return 'standing: write one of until, for_seconds and session';
  if (session && basis.sessionId === null) return 'standing.session: the agent named no session when it made this call';
  const expiresAt = session ? now + MAX_SESSION_MS : (asked.until ?? now + (asked.forSeconds ?? 0) * 1000);
  if (expiresAt <= now) return 'standing.until: this time has passed';
  if (expiresAt > now + MAX_DURATION_MS) return 'standing: it must end within 30 days';
  const free: Free[] = [];
  for (const { member, atMost } of asked.free) {
    const offered = members.find((one) => one.member === member);
    if (!offered)
      return `standing.free: "${member}" may not differ; ${members.length === 0 ? 'nothing in this call may' : `what may is ${members.map((one) => one.member).join(', ')}`}`;
    if (free.some((one) => one.member === member)) return `standing.free: "${member}" is listed twice`;
    if (!offered.isAmount && atMost !== undefined) return `standing.free: "${member}" is no number; leave out at_most`;
    const limit = atMost ?? offered.atMost;
    if (limit !== undefined && limit > (offered.atMost ?? 0))
      return `standing.free: "${member}" may be at most ${offered.atMost}, as in this call`;
    free.push({ member, place: offered.place, ...(limit !== undefined && { atMost: limit }) });
  }
  const terms = { basis, free, session };
  return { terms, uses: count, expiresAt, sentence: sentenceOf(terms, count, expiresAt) };
}

/** Describes in words which calls the terms allow. */
const sentenceOf = ({ free, session }: StandingTerms, count: number, expiresAt: Instant): string =>
  standingWords({
    count,
    until: new Date(expiresAt).toISOString(),
    session,
    free: free.map(({ member, atMost }) => ({ member, at_most: atMost ?? null })),
  });
