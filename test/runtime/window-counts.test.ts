/** Limits shared by several processes, each a `windowCounts` with its own connections to one PostgreSQL. */
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  ALLOWANCE,
  type SharedCounter,
  type Taken,
  type WindowCounts,
  windowCounts,
} from '../../broker/runtime/window-counts.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { postgresCounter, purgeRateCounts } from '../../broker/store/rate-counts.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { newDatabase, postgresNote, STORES } from '../world/stores.ts';

const MINUTE_MS = 60_000;
const LIMIT = 200;
const MAX_GRANTED_AHEAD = LIMIT * ALLOWANCE;
let keys = 0;
const newKey = () => `key ${keys++}`;

test('a single process grants exactly the limit, without waiting', () => {
  const counts = windowCounts(MINUTE_MS);
  const taken = Array.from({ length: 12 }, () => counts.take('k', 10, 1)) as Taken[];
  expect(taken.map(({ allowed, left }) => (allowed ? left : 'refused'))).toEqual([
    ...Array.from({ length: 10 }, (_, index) => 9 - index),
    'refused',
    'refused',
  ]);
  expect(counts.take('k', 10, 0)).toMatchObject({ allowed: true, left: 0 });
  expect(counts.take('other', 10, 11)).toMatchObject({ allowed: false });
});

test('several uses that do not fit together are not counted', () => {
  const counts = windowCounts(MINUTE_MS);
  expect(counts.take('k', 10, 6)).toMatchObject({ allowed: true, left: 4 });
  expect(counts.take('k', 10, 5)).toMatchObject({ allowed: false, left: 4 });
  expect(counts.take('k', 10, 4)).toMatchObject({ allowed: true, left: 0 });
});

test('a key is named once in a report, also when its window ended while a use waited for the counter', async () => {
  const windowMs = 200;
  const reports: string[][] = [];
  const first = Promise.withResolvers<void>();
  const failures: unknown[] = [];
  const counter: SharedCounter = {
    add: async (uses) => {
      if (reports.push(uses.map(({ key }) => key)) === 1) await first.promise;
      return uses.map(() => ({ count: 1, leftMs: windowMs }));
    },
    close: async () => {},
  };
  const counts = windowCounts(windowMs, { counter, watch: { failed: (error) => failures.push(error), worked() {} } });
  onTestFinished(() => counts.stop());
  const taken = [counts.take('in flight', 10, 1), counts.take('waits', 10, 1)];
  await pause(3 * windowMs);
  taken.push(counts.take('waits', 10, 1));
  first.resolve();
  expect((await Promise.all(taken)).map(({ allowed }) => allowed)).toEqual([true, true, true]);
  expect(reports).toEqual([['in flight'], ['waits']]);
  expect(failures).toEqual([]);
});

describe.runIf(STORES.includes('postgres'))(`processes that share a counter${postgresNote}`, () => {
  let url: string;
  const opened = () => {
    const store = openPostgres(url, { connections: 4, onError: () => {} });
    afterFile(() => store.close().catch(() => {}));
    return store;
  };
  let shared: SharedCounter[];
  beforeAll(async () => {
    url = await newDatabase();
    const stores = [opened(), opened(), opened()];
    await migrate(stores[0]!);
    shared = stores.map(({ db }) => postgresCounter(db));
  });

  type Process = WindowCounts & { asked: number; failures: unknown[] };
  /** `counter`: replaces PostgreSQL's. */
  const processes = (many: number, windowMs = MINUTE_MS): Process[] =>
    shared.slice(0, many).map((counter) => {
      const seen = { asked: 0, failures: [] as unknown[] };
      const counts = windowCounts(windowMs, {
        counter: {
          add: (...given) => {
            seen.asked++;
            return counter.add(...given);
          },
          close: async () => {},
        },
        watch: { failed: (error) => seen.failures.push(error), worked: () => {} },
      });
      onTestFinished(() => counts.stop());
      return Object.assign(seen, counts);
    });

  test('MR-05 three processes together grant the limit once, plus a few per process, however uses are distributed', async () => {
    for (const weights of [[1], [1, 1], [1, 1, 1], [8, 1, 1]]) {
      const all = processes(weights.length);
      const key = newKey();
      const turns = weights.flatMap((weight, index) => Array.from({ length: weight }, () => all[index]!));
      let granted = 0;
      let refusedAt = Number.POSITIVE_INFINITY;
      for (let use = 0; use < 2 * LIMIT; use++) {
        const { allowed, leftMs } = await turns[use % turns.length]!.take(key, LIMIT, 1);
        if (allowed) granted++;
        else refusedAt = Math.min(refusedAt, use);
        expect(leftMs).toBeGreaterThan(MINUTE_MS - 20_000);
      }
      expect(refusedAt, 'nobody is refused before the limit').toBeGreaterThanOrEqual(LIMIT);
      expect(granted).toBeLessThanOrEqual(LIMIT + all.length * MAX_GRANTED_AHEAD);
      if (all.length === 1) expect(granted).toBe(LIMIT);
    }
  });

  test('MR-05 three processes grant the limit once under concurrent uses', async () => {
    const all = processes(3);
    const key = newKey();
    const taken = await Promise.all(Array.from({ length: 3 * LIMIT }, (_, use) => all[use % 3]!.take(key, LIMIT, 1)));
    const granted = taken.filter(({ allowed }) => allowed).length;
    expect(granted).toBeGreaterThanOrEqual(LIMIT);
    expect(granted).toBeLessThanOrEqual(LIMIT + 3 * MAX_GRANTED_AHEAD);
  });

  test('a limit too small for an allowance is exact', async () => {
    const all = processes(3);
    const key = newKey();
    const taken = await Promise.all(Array.from({ length: 45 }, (_, use) => all[use % 3]!.take(key, 10, 1)));
    expect(taken.filter(({ allowed }) => allowed)).toHaveLength(10);
  });

  test('well below the limit no use waits, and uses of many keys are reported in one statement', async () => {
    const [one] = processes(1);
    const many = Array.from({ length: 300 }, newKey);
    for (const key of many) expect(one!.take(key, 1_000, 1)).not.toBeInstanceOf(Promise);
    expect(one!.asked).toBe(0);
    await vi.waitUntil(() => one!.asked > 0, { timeout: 5_000 });
    await pause(1_200);
    expect(one!.asked).toBe(1);
    // A process learns what another has reported with its own next report.
    const [other] = processes(1);
    await other!.take(many[0]!, 1_000, 51);
    expect(other!.take(many[0]!, 1_000, 0)).toMatchObject({ left: 1_000 - 52 });
  });

  test('several uses that do not fit together are not counted, whichever process counted the others', async () => {
    const [first, second] = processes(2);
    const key = newKey();
    expect(await first!.take(key, LIMIT, LIMIT - 10)).toMatchObject({ allowed: true });
    // The second process learns of the others by its refusal. The uses that follow at the same time fit.
    const [refused, ...fitting] = await Promise.all([11, 4, 1, 4].map((uses) => second!.take(key, LIMIT, uses)));
    expect(refused).toMatchObject({ allowed: false });
    expect(fitting).toMatchObject([{ allowed: true }, { allowed: true }, { allowed: true }]);
    expect(await second!.take(key, LIMIT, 2)).toMatchObject({ allowed: false, left: 1 });
    // The shared count is corrected without a further use.
    await vi.waitUntil(async () => (await shared[2]!.add([{ key, count: 0 }], MINUTE_MS))[0]?.count === LIMIT - 1);
    expect(await second!.take(key, LIMIT, 1)).toMatchObject({ allowed: true, left: 0 });
    expect(await second!.take(key, LIMIT, 1)).toMatchObject({ allowed: false });
  });

  test('once a key is used up in a process, no more requests are made for it', async () => {
    const [one] = processes(1);
    const key = newKey();
    while ((await one!.take(key, LIMIT, 1)).allowed);
    const { asked } = one!;
    for (let use = 0; use < 1_000; use++) expect(one!.take(key, LIMIT, 1)).toMatchObject({ allowed: false });
    expect(one!.asked).toBe(asked);
  });

  test('a window ends for all processes by the clock of PostgreSQL', async () => {
    const windowMs = scaledTimeout(1_500);
    const [first, second] = processes(2, windowMs);
    const key = newKey();
    for (let use = 0; use < 10; use++) await first!.take(key, 10, 1);
    await pause(windowMs / 3);
    const refused = await second!.take(key, 10, 1);
    expect(refused).toMatchObject({ allowed: false });
    // In the window that the first process began.
    expect(refused.leftMs).toBeLessThanOrEqual((windowMs * 2) / 3);
    await pause(refused.leftMs + 20);
    expect(await second!.take(key, 10, 1)).toMatchObject({ allowed: true, left: 9 });
    expect(await first!.take(key, 10, 1)).toMatchObject({ allowed: true, left: 8 });
  });

  test('while PostgreSQL does not respond, each process enforces the limit by itself, and only the first use waits', async () => {
    const [first, second] = processes(2);
    const key = newKey();
    await first!.take(key, 10, 1);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('begin; lock table rate_counts in access exclusive mode');
    for (const [one, granted] of [
      [first!, 9],
      [second!, 10],
    ] as const) {
      const taken = await Promise.all(Array.from({ length: 12 }, () => one.take(key, 10, 1)));
      expect(taken.filter(({ allowed }) => allowed)).toHaveLength(granted);
      expect(one.take(key, 10, 1), 'refused from memory').toMatchObject({ allowed: false });
      expect(one.take(newKey(), 10, 1), 'granted from memory').toMatchObject({ allowed: true });
    }
    await client.query('commit');
    // Shared again as soon as one report succeeded.
    const next = newKey();
    await vi.waitUntil(() => first!.take(newKey(), 10, 1) instanceof Promise, { timeout: 10_000 });
    await vi.waitUntil(() => second!.take(newKey(), 10, 1) instanceof Promise, { timeout: 10_000 });
    await first!.take(next, 10, 6);
    expect(await second!.take(next, 10, 5)).toMatchObject({ allowed: false });
  });

  test('when PostgreSQL refuses connections, no use waits for long, and the failure is reported', async () => {
    const [one] = processes(1);
    const store = opened();
    await purgeRateCounts(store.db, 0);
    await store.close();
    const failures: unknown[] = [];
    const broken = windowCounts(MINUTE_MS, {
      counter: postgresCounter(store.db),
      watch: { failed: (error) => failures.push(error), worked: () => {} },
    });
    const taken = await Promise.all(Array.from({ length: 12 }, () => broken.take('k', 10, 1)));
    expect(taken.filter(({ allowed }) => allowed)).toHaveLength(10);
    expect(failures.length).toBeGreaterThan(0);
    await broken.stop();
    expect(one!.failures).toEqual([]);
  });

  test('a key of any length is counted, together with others', async () => {
    const long = 'x'.repeat(20_000);
    const uses = [
      { key: long, count: 2 },
      { key: newKey(), count: 1 },
    ];
    expect((await shared[0]!.add(uses, MINUTE_MS)).map(({ count }) => count)).toEqual([2, 1]);
    expect((await shared[1]!.add(uses, MINUTE_MS)).map(({ count }) => count)).toEqual([4, 2]);
  });

  test('counts whose window ended long ago are deleted', async () => {
    const { db } = opened();
    await shared[0]!.add([{ key: 'old', count: 1 }], 1);
    await shared[0]!.add([{ key: 'new', count: 1 }], MINUTE_MS);
    await pause(5);
    await purgeRateCounts(db, Date.now());
    const kept = await db.selectFrom('rate_counts').select('key').where('key', 'in', ['old', 'new']).execute();
    expect(kept).toEqual([{ key: 'new' }]);
  });
});
