import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BREAKER_LIMITS,
  type BreakerCause,
  type BreakerState,
  breakerFacts,
  refuses,
  stateOf,
  strike,
} from '../../broker/decision/breaker.ts';

const CAUSES = Object.keys(BREAKER_LIMITS) as BreakerCause[];
const strikes = (cause: BreakerCause, moments: number[]) =>
  moments.reduce<BreakerState | undefined>((state, now) => strike(state, cause, now), undefined);

describe.each(CAUSES)('%s', (cause) => {
  const { strikes: limit, windowMs, openMs } = BREAKER_LIMITS[cause];
  const burst = (count: number, from = 1000) => Array.from({ length: count }, (_, i) => from + i);

  test('opens at its limit within the window, not before', () => {
    expect(stateOf(strikes(cause, burst(limit - 1)), 5000)).toBe('closed');
    expect(stateOf(strikes(cause, burst(limit)), 5000)).toBe('open');
  });

  test('a window that is over counts no more', () => {
    const late = strikes(cause, [...burst(limit - 1), 1000 + windowMs]);
    expect(stateOf(late, 1000 + windowMs)).toBe('closed');
    expect(late?.strikes).toBe(1);
  });

  test('is half-open after its time, opens again when the trial fails', () => {
    const opened = strikes(cause, burst(limit))!;
    const over = opened.openUntil!;
    expect(over).toBe(1000 + limit - 1 + openMs);
    expect(stateOf(opened, over - 1)).toBe('open');
    expect(stateOf(opened, over)).toBe('half_open');
    const again = strike({ ...opened, trialAt: over }, cause, over + 5);
    expect(stateOf(again, over + 5)).toBe('open');
    expect(again).toMatchObject({ openUntil: over + 5 + openMs, trialAt: null });
  });

  test('failures while it is open do not keep it open', () => {
    const opened = strikes(cause, burst(limit))!;
    const { openUntil, openedAt } = strike(opened, cause, opened.openedAt! + 10);
    expect({ openUntil, openedAt }).toEqual({ openUntil: opened.openUntil, openedAt: opened.openedAt });
  });
});

describe('what a decision sees', () => {
  const state: BreakerState = { strikes: 5, windowStart: 0, openedAt: 1000, openUntil: 61_000, trialAt: null };
  const refusedAt = (changes: Partial<BreakerState>, now: number) => {
    const facts = breakerFacts({ ...state, ...changes }, 'breaker_auth_failure', now);
    return facts && refuses(facts, now);
  };

  test('one trial, which is given away again when it never came back', () => {
    expect(refusedAt({}, 60_999)).toBe(true);
    expect(refusedAt({}, 61_000)).toBe(false);
    expect(refusedAt({ trialAt: 61_000 }, 61_001)).toBe(true);
    expect(refusedAt({ trialAt: 61_000 }, 120_999)).toBe(true);
    expect(refusedAt({ trialAt: 61_000 }, 121_000)).toBe(false);
  });

  test('a closed breaker is no fact', () => {
    expect(refusedAt({ openedAt: null, openUntil: null }, 1)).toBeUndefined();
  });
});

test('whatever the moments of failure, a breaker that opened refuses for its whole time', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...CAUSES),
      fc.array(fc.integer({ min: 0, max: 500_000 }), { maxLength: 80 }),
      (cause, moments) => {
        let state: BreakerState | undefined;
        for (const now of moments.sort((a, b) => a - b)) {
          const before = state;
          state = strike(state, cause, now);
          if (stateOf(before, now) === 'open') expect(state.openUntil).toBe(before!.openUntil);
          if (stateOf(before, now) === 'closed' && stateOf(state, now) === 'open')
            expect(state.strikes).toBe(BREAKER_LIMITS[cause].strikes);
        }
      },
    ),
  );
});
