import { describe, expect, test } from 'vitest';
import { readSoakOptions } from '../../bench/soak.ts';

describe('npm run bench -- soak', () => {
  test('defaults to ten minutes', () => {
    expect(readSoakOptions([])).toEqual({ minutes: 10, people: 20, everyMs: 500, store: 'sqlite' });
    const told = ['--minutes', '1', '--people', '3', '--every', '50', '--store', 'postgres'];
    expect(readSoakOptions(told)).toEqual({ minutes: 1, people: 3, everyMs: 50, store: 'postgres' });
  });

  test.each([
    [['--minutes', '0'], /--minutes: must be a whole number from 1/],
    [['--people', 'many'], /--people: must be a whole number/],
    [['--store', 'redis'], /--store: redis is not a store/],
    [['--hours', '1'], /--hours/],
  ])('%j is refused with a message', (args, words) => {
    expect(() => readSoakOptions(args)).toThrow(words);
  });
});
