import { describe, expect, test } from 'vitest';
import { KINDS, readNeighboursOptions } from '../../bench/neighbours.ts';

describe('npm run bench -- neighbours', () => {
  test('takes three rounds unless told', () => {
    expect(readNeighboursOptions([])).toEqual({ rounds: 3, seconds: 5, connections: 4 });
    const told = ['--rounds', '2', '--seconds', '1', '--connections', '8'];
    expect(readNeighboursOptions(told)).toEqual({ rounds: 2, seconds: 1, connections: 8 });
  });

  test.each([
    [['--rounds', '0'], /--rounds: must be a whole number from 1/],
    [['--connections', '65'], /--connections: must be a whole number/],
    [['--stores', 'sqlite'], /--stores/],
  ])('%j is refused with words', (args, words) => {
    expect(() => readNeighboursOptions(args)).toThrow(words);
  });

  test('bodies of calls are no longer than a call may be', () => {
    for (const kind of KINDS)
      if (!('none' in kind) && kind.path === '/v1/actions')
        expect(Buffer.byteLength(kind.body())).toBeLessThanOrEqual(1024 * 1024);
  });
});
