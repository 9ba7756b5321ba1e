import { describe, expect, test } from 'vitest';
import { FairSlices } from '../../broker/runtime/pace.ts';

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
    let turn = 0;
    let isOver = false;
    const count = () => {
      turn++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await Promise.all(
      works.map(async ([organisation, count], at) => {
        const rest = slices.pacer(organisation);
        for (let slice = 0; slice < count; slice++) {
          await rest();
          ran.push(`${turn} ${organisation}${at}`);
          busy();
        }
      }),
    );
    isOver = true;
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
