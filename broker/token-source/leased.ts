/**
 * Getting a token is one process's work among all replicas: it claims the work in the store (a lease, which ends by time if the
 * process dies), and the others wait for what it stores. No transaction spans the request to whoever issues the token.
 */
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Instant } from '../policy/facts.ts';
import { pause } from '../runtime/waits.ts';

/** How long a claim lasts that is not renewed: longer than an attempt takes, which is 10 seconds for the issuer and the rest for the store. */
const LEASE_MS = 30_000;
/** How long one that is renewed outlives its process. */
const RENEWED_LEASE_MS = 3_000;
const RENEW_MS = 1_000;
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
  /** One guarded statement; undefined: another process was first. `name`: of this claim, by process; `until`: when it ends. */
  claim(lease: { name: string; now: Instant; until: Instant }): Promise<Claim | undefined>;
  attempt(claim: Claim, name: string): Promise<Result>;
  /**
   * Moves the end of the claim while the attempt is under way, if it is still held. With it a claim is short, so that others wait for a process that
   * died for 3 seconds at most; but a process that is stopped for as long does the work beside another one. Without it a claim lasts 30 seconds: for
   * work that must not be done twice, as sending a refresh token that is good once.
   */
  renew?: ((lease: { name: string; until: Instant }) => Promise<void>) | undefined;
  /** Nothing came of waiting. */
  givenUp(): Result;
};

/** Does the work, or waits for the process that does it, at most 15 seconds. */
export async function leased<Claim, Result>(
  { clock, instanceId }: Pick<Broker, 'clock' | 'instanceId'>,
  { look, claim, attempt, renew, givenUp }: LeasedWork<Claim, Result>,
): Promise<Result> {
  const begun = performance.now();
  for (let turn = 1; ; turn++) {
    const seen = await look();
    if (seen.kind === 'done') return seen.result;
    if (seen.kind === 'open') {
      const name = claimName(instanceId);
      const now = clock();
      const claimed = await claim({ name, now, until: now + (renew ? RENEWED_LEASE_MS : LEASE_MS) });
      if (claimed !== undefined) return await renewing(clock, { name, renew }, () => attempt(claimed, name));
    }
    if (seen.kind === 'paused' || performance.now() - begun > PATIENCE_MS) return givenUp();
    await pause(Math.min(LONGEST_TURN_MS, 25 * turn) * (0.75 + Math.random() / 2));
  }
}

/** Renews the claim until the work is done. */
async function renewing<Result>(
  clock: () => Instant,
  { name, renew }: Pick<LeasedWork<unknown, unknown>, 'renew'> & { name: string },
  work: () => Promise<Result>,
): Promise<Result> {
  // A renewal that fails is nothing to tell of: the next one may not, and storing the result will say so otherwise.
  const timer =
    renew && setInterval(() => renew({ name, until: clock() + RENEWED_LEASE_MS }).catch(() => {}), RENEW_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

const claimName = (instanceId: string): string => `${instanceId}/${uuidv4()}`;
