/** Writers that wait for SQLite's single connection let the event loop run in between. */
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import { inTransaction } from '../../broker/store/transaction.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';

const WRITERS = 10;

const turnsWhile = async (work: Promise<unknown>): Promise<number> => {
  let turns = 0;
  let running = true;
  const done = work.finally(() => {
    running = false;
  });
  while (running) {
    turns++;
    await nextTurn();
  }
  await done;
  return turns;
};

test('after each slow transaction or statement the event loop runs a turn; fast ones do not wait for one', async () => {
  const store = openSqlite(join(newFolder(), 'store'));
  afterFile(() => store.close());
  const { db } = store;
  await sql`create table counts (n integer)`.execute(db);
  /** Blocks the thread for some 30 ms, as a commit on a slow disk does. */
  const slow = sql`insert into counts with recursive c (n) as (select 1 union all select n + 1 from c where n < 200000) select max(n) from c`;
  const all = (work: () => Promise<unknown>) => Promise.all(Array.from({ length: WRITERS }, work));

  const transactions = all(() => inTransaction(db, (tx) => slow.execute(tx)));
  expect(await turnsWhile(transactions)).toBeGreaterThanOrEqual(WRITERS);
  expect(await turnsWhile(all(() => slow.execute(db)))).toBeGreaterThanOrEqual(WRITERS);
  expect(await sql<{ n: number }>`select count(*) as n from counts`.execute(db)).toMatchObject({
    rows: [{ n: 2 * WRITERS }],
  });

  const reads = all(() => sql`select 1`.execute(db));
  expect(await turnsWhile(reads)).toBeLessThan(WRITERS / 2);
});
