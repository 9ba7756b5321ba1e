/**
 * The state machine of circuit breakers: enough strikes in a window open a breaker for a while; after that, one trial call is let
 * through. Its success closes the breaker, its failure opens it again. For wrong signatures and malformed calls, a call that is valid is itself the trial.
 * The store counts the strikes, in one statement.
 */
import type { BreakerFacts, Facts, Instant } from './facts.ts';

export type BreakerCause = BreakerFacts['cause'];

/** Counted per agent, and per source address (signatures) or platform (upstream failures). */
export const BREAKER_LIMITS = {
  breaker_auth_failure: { strikes: 5, windowMs: 60_000, openMs: 60_000 },
  breaker_api_error: { strikes: 50, windowMs: 60_000, openMs: 60_000 },
  breaker_upstream_failure: { strikes: 20, windowMs: 60_000, openMs: 60_000 },
} as const satisfies Record<BreakerCause, { strikes: number; windowMs: number; openMs: number }>;

export type BreakerState = {
  strikes: number;
  windowStart: Instant;
  openedAt: Instant | null;
  openUntil: Instant | null;
  /** When the trial call was taken; null while no trial is in flight. */
  trialAt: Instant | null;
};

/**
 * Returns an open or half-open breaker as a decision uses it; undefined when it is closed. A trial that was never reported back expires, and another call may
 * take it.
 */
export function breakerFacts(state: BreakerState, cause: BreakerCause, now: Instant): BreakerFacts | undefined {
  if (state.openedAt === null || state.openUntil === null) return undefined;
  const trialEnds = state.trialAt === null ? now : trialEnd(cause, state.trialAt);
  return {
    cause,
    openedAt: state.openedAt,
    openUntil: state.openUntil,
    trialUntil: trialEnds > now ? trialEnds : null,
  };
}

/** Returns when a trial that was taken expires if its result is never reported. */
function trialEnd(cause: BreakerCause, trialAt: Instant): Instant {
  return trialAt + BREAKER_LIMITS[cause].openMs;
}

/** Returns the latest time until which a breaker refuses calls. */
export function refusesUntil({ openUntil, trialUntil }: BreakerFacts): Instant {
  return Math.max(openUntil, trialUntil ?? openUntil);
}

/** Whether a breaker refuses a call now. The call that a half-open breaker lets through must take the trial before it is sent. */
export function refuses(breaker: BreakerFacts, now: Instant): boolean {
  return refusesUntil(breaker) > now;
}

/**
 * Removes the breakers from the facts: they are checked when a call begins. A later check would refuse the trial call of a half-open breaker because of its
 * own trial.
 */
export function withoutBreakers(facts: Facts): Facts {
  const { agent } = facts;
  const parent = agent.parent && { ...agent.parent, breakers: [] };
  return { ...facts, agent: { ...agent, ...(parent && { parent }) }, breakers: [] };
}
