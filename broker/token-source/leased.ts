/**
 * Getting a token is one process's work among all replicas: it claims the work in the store (a lease, which ends by time if the
 * process dies), and the others wait for what it stores. No transaction spans the request to whoever issues the token.
 */
import { uuidv4 } from '../crypto/ids.ts';
import type { Instant } from '../policy/facts.ts';
import { pause } from '../runtime/waits.ts';

/** How long a claim lasts: longer than an attempt takes, which is 10 seconds for the issuer and the rest for the store. */
export const LEASE_MS = 30_000;
/** How long another process's attempt is waited for. */
const PATIENCE_MS = 15_000;
const LONGEST_TURN_MS = 400;

/**
 * What the store says now. `open`: the work may be claimed. `claimed`: a process is at it. `paused`: nobody is, and nobody should be
 * until a moment that is yet to come.
 */
export type Look<Result> = { kind: 'done'; result: Result } | { kind: 'open' | 'claimed' | 'paused' };

export type LeasedWork<Claim, Result> = {
  look(): Promise<Look<Result>>;
  /** One guarded statement; undefined: another process was first. `name`: of this claim, `until`: when it ends. */
  claim(lease: { name: string; now: Instant; until: Instant }): Promise<Claim | undefined>;
  attempt(claim: Claim, name: string): Promise<Result>;
  /** Nothing came of waiting. */
  givenUp(): Result;
};

/** Does the work, or waits for the process that does it, at most 15 seconds. */
export async function leased<Claim, Result>(
  clock: () => Instant,
  { look, claim, attempt, givenUp }: LeasedWork<Claim, Result>,
): Promise<Result> {
  const begun = performance.now();
  for (let turn = 1; ; turn++) {
    const seen = await look();
    if (seen.kind === 'done') return seen.result;
    if (seen.kind === 'open') {
      const name = uuidv4();
      const now = clock();
      const claimed = await claim({ name, now, until: now + LEASE_MS });
      if (claimed !== undefined) return await attempt(claimed, name);
    }
    if (seen.kind === 'paused' || performance.now() - begun > PATIENCE_MS) return givenUp();
    await pause(Math.min(LONGEST_TURN_MS, 25 * turn) * (0.75 + Math.random() / 2));
  }
}
