import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  BREAKER_LIMITS,
  type BreakerCause,
  type BreakerState,
  breakerFacts,
  refuses,
} from '../../broker/policy/breaker.ts';
import { claimTrial, closeBreaker, releaseTrial, strike as strikeStored } from '../../broker/store/breakers.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';
import { stateOf, strike } from './breaker-model.ts';

const CAUSES = Object.keys(BREAKER_LIMITS) as BreakerCause[];
const strikes = (cause: BreakerCause, moments: number[]) =>
  moments.reduce<BreakerState | undefined>((state, now) => strike(state, cause, now), undefined);

describe.each(CAUSES)('%s', (cause) => {
  const { strikes: limit, windowMs, openMs } = BREAKER_LIMITS[cause];
  const burst = (count: number, from = 1000) => Array.from({ length: count }, (_, i) => from + i);

  test('opens when the limit of strikes is reached within the window, not before', () => {
    expect(stateOf(strikes(cause, burst(limit - 1)), 5000)).toBe('closed');
    expect(stateOf(strikes(cause, burst(limit)), 5000)).toBe('open');
  });

  test('strikes of an earlier window do not count', () => {
    const late = strikes(cause, [...burst(limit - 1), 1000 + windowMs]);
    expect(stateOf(late, 1000 + windowMs)).toBe('closed');
    expect(late?.strikes).toBe(1);
  });

  test('is half-open after its open time, and opens again when the trial fails', () => {
    const opened = strikes(cause, burst(limit))!;
    const over = opened.openUntil!;
    expect(over).toBe(1000 + limit - 1 + openMs);
    expect(stateOf(opened, over - 1)).toBe('open');
    expect(stateOf(opened, over)).toBe('half_open');
    const again = strike({ ...opened, trialAt: over }, cause, over + 5);
    expect(stateOf(again, over + 5)).toBe('open');
    expect(again).toMatchObject({ openUntil: over + 5 + openMs, trialAt: null });
  });

  test('failures while it is open do not extend its open time', () => {
    const opened = strikes(cause, burst(limit))!;
    const { openUntil, openedAt } = strike(opened, cause, opened.openedAt! + 10);
    expect({ openUntil, openedAt }).toEqual({ openUntil: opened.openUntil, openedAt: opened.openedAt });
  });
});

describe('the breaker as facts of a decision', () => {
  const state: BreakerState = { strikes: 5, windowStart: 0, openedAt: 1000, openUntil: 61_000, trialAt: null };
  const refusedAt = (changes: Partial<BreakerState>, now: number) => {
    const facts = breakerFacts({ ...state, ...changes }, 'breaker_auth_failure', now);
    return facts && refuses(facts, now);
  };

  test('a half-open breaker lets one trial through; a trial that is never reported back expires, and another call may take it', () => {
    expect(refusedAt({}, 60_999)).toBe(true);
    expect(refusedAt({}, 61_000)).toBe(false);
    expect(refusedAt({ trialAt: 61_000 }, 61_001)).toBe(true);
    expect(refusedAt({ trialAt: 61_000 }, 120_999)).toBe(true);
    expect(refusedAt({ trialAt: 61_000 }, 121_000)).toBe(false);
  });

  test('a closed breaker is not included in the facts', () => {
    expect(refusedAt({ openedAt: null, openUntil: null }, 1)).toBeUndefined();
  });
});

test('a breaker that opened refuses for its whole open time, whenever the failures happened', () => {
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

test.each(STORES)(`the store counts strikes as the model does, on %s${postgresNote}`, async (store) => {
  const world = await startWorld(store);
  const organisation = await world.organisation();
  const { id } = await organisation.agent({ grants: {} });
  let sequences = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...CAUSES),
      fc.array(fc.integer({ min: 1, max: 150_000 }), { minLength: 1, maxLength: 30 }),
      // Few strikes, so that random times open it, close it, and fail its trial.
      fc.integer({ min: 1, max: 4 }),
      async (cause, moments, most) => {
        const key = { organisation_id: organisation.id, agent_id: id, cause, key: `sequence-${++sequences}` };
        const limits = { ...BREAKER_LIMITS[cause], strikes: most };
        let state: BreakerState | undefined;
        for (const now of moments.sort((a, b) => a - b)) {
          state = strike(state, cause, now, limits);
          const row = await strikeStored(world.db, key, limits, now);
          expect({
            strikes: row.strikes,
            windowStart: row.window_start,
            openedAt: row.opened_at,
            openUntil: row.open_until,
            trialAt: row.trial_at,
          }).toEqual(state);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test.each(STORES)(
  `a trial is of one call until it expires, and closes no breaker that opened again, on %s${postgresNote}`,
  async (store) => {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    const { id } = await organisation.agent({ grants: {} });
    const key = {
      organisation_id: organisation.id,
      agent_id: id,
      cause: 'breaker_upstream_failure',
      key: 'demo',
    } as const;
    const openMs = 60_000;
    const fail = (now: number) => strikeStored(world.db, key, { strikes: 1, windowMs: 60_000, openMs }, now);
    const claim = (now: number) => claimTrial(world.db, key, openMs, now);
    await fail(1_000);
    expect([await claim(60_999), await closeBreaker(world.db, key, 60_999)]).toEqual([false, false]);
    expect([await claim(61_000), await claim(61_000), await claim(120_999)]).toEqual([true, false, false]);
    // The first call was not heard of again. When it ends after all, it does not release the trial of the next one.
    expect(await claim(121_000)).toBe(true);
    await releaseTrial(world.db, key, 61_000);
    expect(await claim(122_000)).toBe(false);
    await releaseTrial(world.db, key, 121_000);
    expect(await claim(122_000)).toBe(true);
    await fail(123_000);
    expect(await closeBreaker(world.db, key, 124_000)).toBe(false);
    expect([await claim(183_000), await closeBreaker(world.db, key, 184_000)]).toEqual([true, true]);
  },
);
