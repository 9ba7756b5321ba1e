import { describe, expect, test } from 'vitest';
import { readLimitsOptions } from '../../bench/rate-limits.ts';

describe('npm run bench -- limits', () => {
  test('defaults to ten rounds without Redis', () => {
    expect(readLimitsOptions([])).toEqual({ rounds: 10, seconds: 5, calls: 60_000, redis: undefined });
    const told = ['--rounds', '2', '--seconds', '1', '--calls', '10', '--redis', 'redis://localhost'];
    expect(readLimitsOptions(told)).toEqual({ rounds: 2, seconds: 1, calls: 10, redis: 'redis://localhost' });
  });

  test.each([
    [['--rounds', '0'], /--rounds: must be a whole number from 1/],
    [['--alone'], /--alone/],
  ])('%j is refused with a message', (args, words) => {
    expect(() => readLimitsOptions(args)).toThrow(words);
  });
});
