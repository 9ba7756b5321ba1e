/**
 * Runs work, such as getting a token, on one replica at a time: a process claims it in the store (a lease, which expires if the process
 * dies), and the others wait for the stored result. No transaction spans the request to the issuer.
 */
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Instant } from '../policy/facts.ts';
import { pause } from '../runtime/waits.ts';

/** Lifetime of a claim that is not renewed. Longer than an attempt takes: 10 seconds for the issuer and the rest for the store. */
const LEASE_MS = 30_000;
/** Lifetime of a renewed claim, and so how long it outlives a dead process. */
const RENEWED_LEASE_MS = 3_000;
const RENEW_MS = 1_000;
/** How long to wait for another process's attempt. */
const MAX_WAIT_MS = 15_000;
const MAX_PAUSE_MS = 400;

/**
 * State of the work in the store. `open`: it may be claimed. `claimed`: a process is working on it. `paused`: nobody is, and nobody should
 * be before a later time.
 */
export type Look<Result> = { kind: 'done'; result: Result } | { kind: 'open' | 'claimed' | 'paused' };

export type LeasedWork<Claim, Result> = {
  look(): Promise<Look<Result>>;
  /**
   * Claims the work with one guarded statement. Returns undefined when another process claimed it first. `name`: unique per claim, contains
   * the process; `until`: when it expires.
   */
  claim(lease: { name: string; now: Instant; until: Instant }): Promise<Claim | undefined>;
  attempt(claim: Claim, name: string): Promise<Result>;
  /**
   * Extends the claim during the attempt, if it is still held. With it a claim is short, so that others wait 3 seconds at most for a dead
   * process; but if a process is suspended that long, the work is done twice. Without it a claim lasts 30 seconds: for work that must not
   * be done twice, such as using a single-use refresh token.
   */
  renew?: ((lease: { name: string; until: Instant }) => Promise<void>) | undefined;
  /** The result when waiting timed out. */
  givenUp(): Result;
};

/** Does the work, or waits for the process that does it, for at most 15 seconds. */
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
    if (seen.kind === 'paused' || performance.now() - begun > MAX_WAIT_MS) return givenUp();
    await pause(Math.min(MAX_PAUSE_MS, 25 * turn) * (0.75 + Math.random() / 2));
  }
}

/** Renews the claim until the work is done. */
async function renewing<Result>(
  clock: () => Instant,
  { name, renew }: Pick<LeasedWork<unknown, unknown>, 'renew'> & { name: string },
  work: () => Promise<Result>,
): Promise<Result> {
  // A failed renewal is ignored: the next one may succeed, and otherwise storing the result fails.
  const timer =
    renew && setInterval(() => renew({ name, until: clock() + RENEWED_LEASE_MS }).catch(() => {}), RENEW_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

const claimName = (instanceId: string): string => `${instanceId}/${uuidv4()}`;
