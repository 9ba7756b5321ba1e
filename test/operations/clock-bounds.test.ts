/** Limits for clock differences: from 30 seconds on a clock is in doubt, from 5 minutes on a broker does not start. */
import { Writable } from 'node:stream';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';
import { postgresTime, storeNewestHeartbeat } from '../../broker/store/store-time.ts';
import { type StoreClock, startStoreClock } from '../../broker/store-clock.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

const log = makeLog('silent', new Writable({ write: (_chunk, _encoding, done) => done() }));

afterEach(() => {
  vi.useRealTimers();
});

/** Moves only the system clock of this process; monotonic time goes on. */
const move = (ms: number) => {
  vi.useFakeTimers({ toFake: ['Date'], now: performance.timeOrigin + performance.now() + ms });
};

describe.runIf(STORES.includes('postgres'))(`beside PostgreSQL's clock${postgresNote}`, () => {
  const world = givenWorld('postgres');
  /** Starts a store clock that is off by exactly `ms`, whatever the clocks of this machine and the server. */
  const startOff = async (ms: number): Promise<StoreClock> => {
    const { store } = world.running.broker;
    vi.useRealTimers();
    const asked = performance.now();
    const time = await postgresTime(store.db);
    const halfWay = (performance.now() - asked) / 2;
    move(time + halfWay + ms - (performance.timeOrigin + performance.now()));
    return await startStoreClock(store, { log });
  };

  test.each([25_000, -25_000])('with %i ms of difference the clock is not in doubt', async (ms) => {
    const clock = await startOff(ms);
    expect(clock.problem()).toBeUndefined();
    expect(Math.abs(clock.offsetMs() - ms)).toBeLessThan(4_000);
  });

  test.each([
    [40_000, /40 s ahead of the clock of PostgreSQL/],
    [-40_000, /40 s behind the clock of PostgreSQL/],
    [290_000, /5 min ahead of/],
    [-290_000, /5 min behind/],
  ])('with %i ms of difference the clock is in doubt, and the store’s time is used', async (ms, words) => {
    const clock = await startOff(ms);
    expect(clock.problem()).toMatch(words);
    expect(Math.abs(clock.now() - (Date.now() - ms))).toBeLessThan(4_000);
  });

  test.each([310_000, -310_000])('with %i ms of difference the broker does not start', async (ms) => {
    await expect(startOff(ms)).rejects.toThrow(/so nothing was started/);
  });
});

describe('beside the newest heartbeat on SQLite', () => {
  const world = givenWorld('sqlite');
  const startAfter = async (beatAheadMs: number): Promise<StoreClock> => {
    const { store } = world.running.broker;
    await storeNewestHeartbeat(store.db, Math.trunc(Date.now() + beatAheadMs));
    return await startStoreClock(store, { log });
  };

  test('slightly behind is accepted, 30 seconds are in doubt, and 5 minutes prevent the start', async () => {
    expect((await startAfter(25_000)).problem()).toBeUndefined();
    expect((await startAfter(40_000)).problem()).toMatch(/40 s behind the elapsed time/);
    expect((await startAfter(290_000)).problem()).toMatch(/5 min behind/);
    await expect(startAfter(310_000)).rejects.toThrow(/5 min behind the newest heartbeat.*--accept-clock/);
  });

  test('a clock that is set ahead by up to 5 minutes is followed, and further it is not', async () => {
    const clock = await startAfter(0);
    move(290_000);
    await clock.check();
    expect(clock.problem()).toBeUndefined();
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(2_000);
    move(290_000 + 310_000);
    await clock.check();
    expect(clock.problem()).toMatch(/5 min ahead of the elapsed time/);
    expect(Math.abs(clock.now() - (Date.now() - 310_000))).toBeLessThan(2_000);
  });
});
