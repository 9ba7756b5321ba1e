import { describe, expect, test, vi } from 'vitest';
import { FairSlices, MeasuredWork } from '../../broker/runtime/pace.ts';
import { countTurns } from '../world/turns.ts';

/** Longer than a slice. */
const busy = () => {
  const until = performance.now() + 5;
  while (performance.now() < until);
};

describe('slices of long work', () => {
  /** Runs works with this number of slices each, of these organisations. Returns who had a slice in which turn of the event loop. */
  async function run(works: readonly (readonly [organisation: string, slices: number])[]): Promise<string[]> {
    const slices = new FairSlices();
    const ran: string[] = [];
    using turns = countTurns();
    await Promise.all(
      works.map(async ([organisation, count], at) => {
        const rest = slices.pacer(organisation);
        for (let slice = 0; slice < count; slice++) {
          await rest();
          ran.push(`${turns.turn} ${organisation}${at}`);
          busy();
        }
      }),
    );
    return ran;
  }

  test('take one slice in a turn of the event loop, the oldest work first', async () => {
    const ran = await run([
      ['a', 3],
      ['a', 2],
      ['a', 1],
    ]);
    expect(ran.map((one) => one.split(' ')[1])).toEqual(['a0', 'a0', 'a0', 'a1', 'a1', 'a2']);
    expect(new Set(ran.map((one) => one.split(' ')[0])).size).toBe(6);
  });

  test('alternate between organisations', async () => {
    const ran = await run([
      ['a', 2],
      ['a', 2],
      ['b', 2],
      ['c', 1],
    ]);
    expect(ran.map((one) => one.split(' ')[1])).toEqual(['a0', 'b2', 'c3', 'a0', 'b2', 'a1', 'a1']);
  });
});

describe('work that cannot be divided', () => {
  /** Takes this much processor time. */
  const work = (ms: number) => () => {
    const began = process.threadCpuUsage();
    for (let used = 0; used < ms * 1_000; ) {
      const { user, system } = process.threadCpuUsage(began);
      used = user + system;
    }
    return performance.now();
  };

  test('runs immediately while it is short', async () => {
    const measured = new MeasuredWork();
    let isLater = false;
    setImmediate(() => {
      isLater = true;
    });
    for (let i = 0; i < 50; i++) await measured.run('a', work(0));
    await measured.run('a', work(6));
    await measured.run('a', work(0));
    expect(isLater).toBe(false);
  });

  test('is short when a timer tick falls into it, at which the kernel brings processor time up to date', async () => {
    const measured = new MeasuredWork();
    let ticks = 0;
    using _ = vi.spyOn(process, 'threadCpuUsage').mockImplementation(() => ({ user: 4_000 * ++ticks, system: 0 }));
    let isLater = false;
    setImmediate(() => {
      isLater = true;
    });
    for (let i = 0; i < 50; i++) await measured.run('a', () => i);
    expect(isLater).toBe(false);
  });

  test('of an organisation whose work was long twice runs with pauses, in which that of others runs', async () => {
    const measured = new MeasuredWork();
    const all = Promise.all(Array.from({ length: 5 }, () => measured.run('a', work(10))));
    const began = performance.now();
    const other = await measured.run('b', work(0));
    const [, second, ...later] = await all;
    expect(other).toBeGreaterThan(second!);
    expect(other - began).toBeLessThan(later[0]! - began);
    // The first paced one follows without a pause. Timers may fire up to a millisecond early.
    for (const [at, ended] of later.entries()) if (at > 0) expect(ended - later[at - 1]!).toBeGreaterThan(10 + 10 - 2);
  });

  test('that throws rejects, and the next one runs', async () => {
    const measured = new MeasuredWork();
    await Promise.all([measured.run('a', work(6)), measured.run('a', work(6))]);
    const failed = measured.run('a', () => {
      throw new Error('no result');
    });
    const next = measured.run('a', () => 'next');
    await expect(failed).rejects.toThrow('no result');
    expect(await next).toBe('next');
  });
});
