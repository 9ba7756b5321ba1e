import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { makeRowQueue } from '../../broker/audit/row-queue.ts';
import type { RowWriter } from '../../broker/audit/row-writer.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import { auditRow } from '../world/rows.ts';

/** A queue with a writer whose batches are accepted by `done()`. */
function queue() {
  const batches: { rows: readonly AuditRow[]; done(): void }[] = [];
  const write: RowWriter['write'] = (rows) => {
    const { promise: accepted, resolve: done } = Promise.withResolvers<void>();
    batches.push({ rows, done });
    return { accepted, written: accepted.then(() => new Set(rows.map(({ id }) => id))) };
  };
  const rows = makeRowQueue({ dialect: 'sqlite' }, { write, close: async () => {} });
  const put = (count: number) => Array.from({ length: count }, () => rows.put(auditRow(), true));
  const turns = async (count: number) => {
    for (let i = 0; i < count; i++) await turn();
  };
  return { batches, put, turns, empty: rows.empty, sizes: () => batches.map((batch) => batch.rows.length) };
}

test('under load, rows of the next two turns of the event loop join the waiting batch', async () => {
  const { batches, put, turns, empty, sizes } = queue();
  const stored = put(4);
  await turns(1);
  expect(sizes()).toEqual([4]);
  stored.push(...put(1));
  batches[0]!.done();
  await stored[0];
  stored.push(...put(1));
  await turns(1);
  expect(sizes()).toEqual([4]);
  stored.push(...put(1));
  await turns(1);
  expect(sizes()).toEqual([4, 3]);
  batches[1]!.done();
  expect(await Promise.all(stored)).toEqual(stored.map(() => true));
  await empty();
  expect(sizes()).toEqual([4, 3]);
});

test('after a small batch the next one starts immediately', async () => {
  const { batches, put, turns, empty, sizes } = queue();
  const stored = put(3);
  await turns(1);
  stored.push(...put(2));
  batches[0]!.done();
  await stored[0];
  expect(sizes()).toEqual([3, 2]);
  batches[1]!.done();
  expect(await Promise.all(stored)).toEqual(stored.map(() => true));
  await empty();
});
