import { describe, expect, test } from 'vitest';
import { readScaleOptions } from '../../bench/scale.ts';

describe('npm run bench -- scale', () => {
  test('defaults to 100,000 agents and a million rows', () => {
    expect(readScaleOptions([])).toEqual({ agents: 100_000, rows: 1_000_000, seconds: 5 });
    const told = ['--agents', '10', '--rows', '20', '--seconds', '1'];
    expect(readScaleOptions(told)).toEqual({ agents: 10, rows: 20, seconds: 1 });
  });

  test.each([
    [['--rows', '0'], /--rows: must be a whole number from 1/],
    [['--quick'], /--quick/],
  ])('%j is refused with a message', (args, words) => {
    expect(() => readScaleOptions(args)).toThrow(words);
  });
});
