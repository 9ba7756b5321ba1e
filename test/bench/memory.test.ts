import { describe, expect, test } from 'vitest';
import { judgeMemory, readMemoryOptions } from '../../bench/memory.ts';

describe('npm run bench -- memory', () => {
  test('defaults to ten minutes on SQLite', () => {
    expect(readMemoryOptions([])).toEqual({ minutes: 10, connections: 8, store: 'sqlite' });
  });

  test.each([
    [['--minutes', '0'], /--minutes: must be a whole number from 1/],
    [['--store', 'redis'], /--store: redis is not a store/],
    [['--hours', '1'], /--hours/],
  ])('%j is refused with a message', (args, message) => {
    expect(() => readMemoryOptions(args)).toThrow(message);
  });

  const MIB = 1024 * 1024;
  const intervals = (heap: readonly number[], external: readonly number[]) =>
    heap.map((mib, at) => ({ heap: mib * MIB, external: (external[at] ?? 0) * MIB, resident: 0, requests: at }));
  const flat = Array(12).fill(10) as number[];

  test('takes caches that fill, and garbage between two full collections, for no growth', () => {
    const sawtooth = [40, 60, 80, 90, 62, 90, 120, 70, 95, 63, 90, 120];
    const { grown, isSteady } = judgeMemory(intervals(sawtooth, flat));
    expect(grown).toEqual({ heap: MIB, external: 0 });
    expect(isSteady).toBe(true);
  });

  test('finds a leak of objects, and one of buffers', () => {
    const leak = Array.from({ length: 12 }, (_, at) => 60 + 3 * at);
    expect(judgeMemory(intervals(leak, flat))).toEqual({ grown: { heap: 12 * MIB, external: 0 }, isSteady: false });
    expect(judgeMemory(intervals(flat, leak)).isSteady).toBe(false);
  });
});
