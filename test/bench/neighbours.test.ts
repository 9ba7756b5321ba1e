import { describe, expect, test } from 'vitest';
import { KINDS, readNeighboursOptions } from '../../bench/neighbours.ts';

describe('npm run bench -- neighbours', () => {
  test('defaults to three rounds', () => {
    expect(readNeighboursOptions([])).toEqual({ rounds: 3, seconds: 5, connections: 4 });
    const told = ['--rounds', '2', '--seconds', '1', '--connections', '8'];
    expect(readNeighboursOptions(told)).toEqual({ rounds: 2, seconds: 1, connections: 8 });
  });

  test.each([
    [['--rounds', '0'], /--rounds: must be a whole number from 1/],
    [['--connections', '65'], /--connections: must be a whole number/],
    [['--stores', 'sqlite'], /--stores/],
  ])('%j is refused with a message', (args, words) => {
    expect(() => readNeighboursOptions(args)).toThrow(words);
  });

  test('the bodies of calls are within the limit for a call', () => {
    for (const kind of KINDS)
      if (!('none' in kind) && kind.path === '/v1/actions')
        expect(Buffer.byteLength(kind.body())).toBeLessThanOrEqual(1024 * 1024);
  });
});
