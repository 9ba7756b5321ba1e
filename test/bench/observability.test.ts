import { describe, expect, test } from 'vitest';
import { readObservabilityOptions } from '../../bench/observability.ts';

describe('npm run bench -- observability', () => {
  test('defaults to ten rounds', () => {
    expect(readObservabilityOptions([])).toEqual({ rounds: 10, seconds: 5, calls: 60_000, alone: false });
    const told = ['--rounds', '2', '--seconds', '1', '--calls', '10', '--alone'];
    expect(readObservabilityOptions(told)).toEqual({ rounds: 2, seconds: 1, calls: 10, alone: true });
  });

  test.each([
    [['--rounds', '0'], /--rounds: must be a whole number from 1/],
    [['--calls', 'many'], /--calls: must be a whole number/],
    [['--stores', 'sqlite'], /--stores/],
  ])('%j is refused with a message', (args, words) => {
    expect(() => readObservabilityOptions(args)).toThrow(words);
  });
});
