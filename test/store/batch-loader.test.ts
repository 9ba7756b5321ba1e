import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { batchLoader } from '../../broker/store/batch-loader.ts';

/** A batch loader whose batches are answered by the test. */
function loading(most = 64) {
  const groups: { asked: readonly number[]; answer(): void; fail(error: Error): void }[] = [];
  const ask = batchLoader<number, string>(
    (asked) =>
      new Promise((resolve, reject) => {
        groups.push({ asked, answer: () => resolve(asked.map((one) => `answer to ${one}`)), fail: reject });
      }),
    most,
  );
  return { ask, groups };
}

describe('concurrent requests to a batch loader', () => {
  test('form one batch, and each gets its own answer', async () => {
    const { ask, groups } = loading();
    const asking = Promise.all([ask(1), ask(2), ask(3)]);
    await setImmediate();
    expect(groups.map(({ asked }) => asked)).toEqual([[1, 2, 3]]);
    groups[0]!.answer();
    expect(await asking).toEqual(['answer to 1', 'answer to 2', 'answer to 3']);
  });

  test('wait for the batch in flight, and start immediately after it', async () => {
    const { ask, groups } = loading();
    const first = ask(1);
    await setImmediate();
    const later = Promise.all([ask(2), ask(3)]);
    await setImmediate();
    expect(groups).toHaveLength(1);
    groups[0]!.answer();
    await first;
    await setImmediate();
    expect(groups[1]!.asked).toEqual([2, 3]);
    groups[1]!.answer();
    expect(await later).toEqual(['answer to 2', 'answer to 3']);
  });

  test('are split into batches of at most the maximum size', async () => {
    const { ask, groups } = loading(2);
    const asking = Promise.all([1, 2, 3, 4, 5].map(ask));
    for (const size of [2, 2, 1]) {
      await setImmediate();
      expect(groups.at(-1)!.asked).toHaveLength(size);
      groups.at(-1)!.answer();
    }
    expect(await asking).toHaveLength(5);
  });

  test('all fail when their batch fails, and the next batch still runs', async () => {
    const { ask, groups } = loading();
    const asking = Promise.allSettled([ask(1), ask(2)]);
    await setImmediate();
    const later = ask(3);
    groups[0]!.fail(new Error('gone'));
    expect((await asking).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await setImmediate();
    groups[1]!.answer();
    expect(await later).toBe('answer to 3');
  });
});
