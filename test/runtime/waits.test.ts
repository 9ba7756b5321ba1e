import { expect, test } from 'vitest';
import { retryUntil, withTimeout } from '../../broker/runtime/waits.ts';

test('a wait ends with the work, with what the work throws, or with the timeout', async () => {
  expect(await withTimeout(Promise.resolve(1), 60_000, 'late')).toBe(1);
  await expect(withTimeout(Promise.reject(new Error('broken')), 60_000, 'late')).rejects.toThrow('broken');
  const work = Promise.withResolvers<never>();
  expect(await withTimeout(work.promise, 1, 'late')).toBe('late');
  // Nobody awaits this promise any more: it must not cause an unhandled rejection.
  work.reject(new Error('too late'));
  await new Promise((turn) => setImmediate(turn));
});

test('failed work is retried, at least once, until the timeout or a final error', async () => {
  const tries: boolean[] = [];
  const failing = (error: Error, times: number) => async (isFirst: boolean) => {
    tries.push(isFirst);
    if (tries.length <= times) throw error;
    return tries.length;
  };
  const isFinal = (error: unknown) => (error as Error).message === 'final';
  expect(await retryUntil(failing(new Error('away'), 1), 0, isFinal)).toBe(2);
  expect(tries).toEqual([true, false]);
  tries.length = 0;
  await expect(retryUntil(failing(new Error('away'), 9), 0, isFinal)).rejects.toThrow('away');
  expect(tries).toEqual([true, false]);
  tries.length = 0;
  await expect(retryUntil(failing(new Error('final'), 9), 60_000, isFinal)).rejects.toThrow('final');
  expect(tries).toEqual([true]);
});
