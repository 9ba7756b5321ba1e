import { expect, test } from 'vitest';
import { notedUses } from '../../broker/runtime/noted-uses.ts';

const MINUTE_MS = 60_000;

test('uses are written every five minutes, also after a clock that was ahead was set back', async () => {
  let now = 100 * MINUTE_MS;
  const written: number[] = [];
  const uses = notedUses(
    () => now,
    async (ids, at) => void written.push(...ids.map(() => at / MINUTE_MS)),
  );
  const usedAt = async (minute: number) => {
    now = minute * MINUTE_MS;
    uses.note('key');
    await uses.write();
  };
  for (const minute of [100, 104, 105, 1_000, 107, 111, 112]) await usedAt(minute);
  expect(written).toEqual([100, 105, 1_000, 107, 112]);
});
