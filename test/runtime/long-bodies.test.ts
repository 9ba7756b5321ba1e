import { describe, expect, test } from 'vitest';
import { makeLongBodies } from '../../broker/runtime/long-bodies.ts';

const MIB = 1024 * 1024;
const of = (family: string, organisation = 'acme') => ({ family, organisation });

/** Blocks the thread for this long. */
const busy = (ms: number) => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};
/** Parses like a long body, in slices of 10 ms. Records when it began and ended. */
const work = (slices: number, times: { began: number; ended: number }[]) => async (rest: () => Promise<void>) => {
  const time = { began: performance.now(), ended: 0 };
  times.push(time);
  for (let slice = 0; slice < slices; slice++) {
    busy(10);
    await rest();
  }
  time.ended = performance.now();
};

describe('long bodies', () => {
  test('are parsed one after another, each after a pause of four times the previous parse', async () => {
    const { inTurn } = makeLongBodies().parsing(of('family'));
    const times: { began: number; ended: number }[] = [];
    await Promise.all([inTurn(work(3, times)), inTurn(work(1, times)), inTurn(work(1, times))]);
    const [first, second, third] = times as [(typeof times)[0], (typeof times)[0], (typeof times)[0]];
    // Timers may fire up to a millisecond early.
    expect(second.began - first.ended).toBeGreaterThan(4 * 30 - 2);
    expect(third.began - second.ended).toBeGreaterThan(4 * 10 - 2);
  });

  test('of another family do not wait', async () => {
    const bodies = makeLongBodies();
    const [mine, theirs] = [[], []] as { began: number; ended: number }[][];
    const all = [bodies.parsing(of('a')).inTurn(work(5, mine!)), bodies.parsing(of('a')).inTurn(work(1, mine!))];
    await bodies.parsing(of('b')).inTurn(work(1, theirs!));
    // Between the slices of the first one, and before the second one of that family.
    expect(mine).toHaveLength(1);
    await Promise.all(all);
    expect(theirs![0]!.ended).toBeLessThan(mine![1]!.began);
  });

  test('a failed parse rejects with its error, and the next one runs', async () => {
    const { inTurn } = makeLongBodies().parsing(of('family'));
    const failed = inTurn(async () => {
      throw new Error('no JSON');
    });
    const next = inTurn(async () => 'next');
    await expect(failed).rejects.toThrow('no JSON');
    expect(await next).toBe('next');
  });

  test('four of a family are read concurrently; the fifth begins when one is complete', async () => {
    const { read } = makeLongBodies();
    const ends: (() => void)[] = [];
    const reading = Array.from({ length: 6 }, () =>
      read(of('family'), 1, () => new Promise<void>((resolve) => ends.push(resolve))),
    );
    await read(of('other'), 1, async () => {});
    expect(ends).toHaveLength(4);
    ends[1]!();
    await reading[1];
    await new Promise(setImmediate);
    expect(ends).toHaveLength(5);
    for (let end = 0; end < 6; end++) {
      ends[end]!();
      await new Promise(setImmediate);
    }
    await Promise.all(reading);
  });

  test('64 MiB are read concurrently; more of the same organisation wait, and other organisations have a reserve', async () => {
    const { read } = makeLongBodies();
    const ends: (() => void)[] = [];
    let begun: string[] = [];
    const begin = (family: string, organisation: string, bytes: number) =>
      read(of(family, organisation), bytes, async () => {
        begun.push(organisation);
        await new Promise<void>((resolve) => ends.push(resolve));
      });
    const all = Array.from({ length: 40 }, (_, i) => begin(`${i}`, 'large', 2 * MIB));
    await new Promise(setImmediate);
    expect(begun.length).toBe(32);
    begun = [];
    all.push(...Array.from({ length: 12 }, (_, i) => begin(`other ${i}`, 'small', 2 * MIB)));
    await new Promise(setImmediate);
    expect(begun).toEqual(Array(8).fill('small'));
    begun = [];
    // What ends makes room: for the next one of the organisation that uses little, once it uses less again.
    ends[32]!();
    await new Promise(setImmediate);
    expect(begun).toEqual(['small']);
    while (ends.length < all.length) {
      for (const end of ends) end();
      await new Promise(setImmediate);
    }
    for (const end of ends) end();
    await Promise.all(all);
  });
});
