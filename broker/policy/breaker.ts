/**
 * The arithmetic of circuit breakers (decisions, Deciding): enough strikes in a window open a breaker for a while; after
 * that one trial call passes, which closes it when it goes well and opens it again when it does not. Of wrong signatures and
 * malformed calls, a call that may be made is the trial itself. Strikes are counted by the store, in one statement.
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
  /** When the trial call was taken; null while it is free. */
  trialAt: Instant | null;
};

/** The breaker as a decision sees it; undefined when it is closed. A trial that never came back is given away again. */
export function breakerFacts(state: BreakerState, cause: BreakerCause, now: Instant): BreakerFacts | undefined {
  if (state.openedAt === null || state.openUntil === null) return undefined;
  const over = state.trialAt === null ? now : trialEnd(cause, state.trialAt);
  return { cause, openedAt: state.openedAt, openUntil: state.openUntil, trialUntil: over > now ? over : null };
}

/** Until when a trial that was taken is waited for, should nothing be heard of it again. */
function trialEnd(cause: BreakerCause, trialAt: Instant): Instant {
  return trialAt + BREAKER_LIMITS[cause].openMs;
}

/** When a breaker lets a call through again, at the latest. */
export function refusesUntil({ openUntil, trialUntil }: BreakerFacts): Instant {
  return Math.max(openUntil, trialUntil ?? openUntil);
}

/** Whether a breaker refuses a call now. The call that passes a half-open one must take the trial before it is sent. */
export function refuses(breaker: BreakerFacts, now: Instant): boolean {
  return refusesUntil(breaker) > now;
}

/** Breakers are looked at when a call begins; later the trial call of a half-open one would be refused because of itself. */
export function withoutBreakers(facts: Facts): Facts {
  const { agent } = facts;
  const parent = agent.parent && { ...agent.parent, breakers: [] };
  return { ...facts, agent: { ...agent, ...(parent && { parent }) }, breakers: [] };
}
