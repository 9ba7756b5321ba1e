/** A model of the state machine of strikes, against which the store's single statement is tested. */
import { BREAKER_LIMITS, type BreakerCause, type BreakerState } from '../../broker/policy/breaker.ts';
import type { Instant } from '../../broker/policy/facts.ts';

/** Counts one failure. A failed trial reopens the breaker immediately; failures while it is open change no times. */
export function strike(
  state: BreakerState | undefined,
  cause: BreakerCause,
  now: Instant,
  limits: { strikes: number; windowMs: number; openMs: number } = BREAKER_LIMITS[cause],
): BreakerState {
  const inWindow = state !== undefined && state.windowStart > now - limits.windowMs;
  const strikes = inWindow ? state.strikes + 1 : 1;
  const windowStart = inWindow ? state.windowStart : now;
  const before = stateOf(state, now);
  const opens = before === 'half_open' || (before === 'closed' && strikes >= limits.strikes);
  if (opens) return { strikes, windowStart, openedAt: now, openUntil: now + limits.openMs, trialAt: null };
  return {
    strikes,
    windowStart,
    openedAt: state?.openedAt ?? null,
    openUntil: state?.openUntil ?? null,
    trialAt: state?.trialAt ?? null,
  };
}

/** `half_open`: the breaker's time has passed, and the next call is a trial. */
export function stateOf(state: BreakerState | undefined, now: Instant): 'closed' | 'open' | 'half_open' {
  if (state === undefined || state.openUntil === null) return 'closed';
  return state.openUntil > now ? 'open' : 'half_open';
}
