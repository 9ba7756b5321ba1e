/** Session settings of the broker on databases with other defaults than PostgreSQL. */
import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { openPreparedStatements } from '../../broker/store/postgres/statements.ts';
import { inTransaction } from '../../broker/store/transaction.ts';
import { administer, nameOf, newDatabase, postgresNote, STORES } from '../world/stores.ts';

const ISOLATION = "select current_setting('transaction_isolation') as level";

test.runIf(STORES.includes('postgres'))(`a lock_timeout of the database is overridden${postgresNote}`, async () => {
  const url = await newDatabase();
  await administer(`alter database ${nameOf(url)} set lock_timeout = '300ms'`);
  const store = openPostgres(url, { connections: 1, onError: () => {} });
  onTestFinished(() => store.close());
  const { rows } = await sql`show lock_timeout`.execute(store.db);
  expect(rows).toEqual([{ lock_timeout: '0' }]);
});

test.runIf(STORES.includes('postgres'))(
  `a connection opened while the database was read-only is closed${postgresNote}`,
  async () => {
    const url = await newDatabase();
    const store = openPostgres(url, { connections: 1, onError: () => {} });
    onTestFinished(() => store.close());
    await administer(`alter database ${nameOf(url)} set default_transaction_read_only = on`);
    const write = () => sql`create table made (n int)`.execute(store.db);
    await expect(write()).rejects.toMatchObject({ code: '25006' });
    await administer(`alter database ${nameOf(url)} reset default_transaction_read_only`);
    await write();
  },
);

describe.runIf(STORES.includes('postgres'))(`a database whose default isolation is serializable${postgresNote}`, () => {
  const serializable = async (): Promise<string> => {
    const url = await newDatabase();
    await administer(`alter database ${nameOf(url)} set default_transaction_isolation = 'serializable'`);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query(ISOLATION)).rows).toEqual([{ level: 'serializable' }]);
    return url;
  };

  test('is used with read committed isolation by every pool', async () => {
    const url = await serializable();
    const store = openPostgres(url, { connections: 8, onError: () => {} });
    onTestFinished(() => store.close());
    const untimed = store.untimed!();
    onTestFinished(() => untimed.close());
    const prepared = openPreparedStatements(url, { max: 1, onError: () => {} });
    onTestFinished(() => prepared.close());
    const { rows } = await sql.raw<{ level: string }>(ISOLATION).execute(store.db);
    const inOne = await inTransaction(store.db, (tx) => sql.raw<{ level: string }>(ISOLATION).execute(tx));
    const late = await sql.raw<{ level: string }>(ISOLATION).execute(untimed.db);
    expect([rows, inOne.rows, late.rows].flat()).toEqual(Array(3).fill({ level: 'read committed' }));
    expect(await prepared.run({ name: 'isolation', text: ISOLATION, values: [] })).toEqual([['read committed']]);
  });

  test('does not cancel a change because of a concurrent one that does not conflict', async () => {
    const store = openPostgres(await serializable(), { connections: 8, onError: () => {} });
    onTestFinished(() => store.close());
    await sql`create table pair (side text primary key, n int not null)`.execute(store.db);
    await sql`insert into pair values ('left', 1), ('right', 1)`.execute(store.db);
    // Both transactions read both rows before either writes its own, which no serial order could produce.
    const bothHaveRead = Promise.withResolvers<void>();
    let reads = 0;
    const add = (side: string) =>
      inTransaction(store.db, async (tx) => {
        await sql`select sum(n) from pair`.execute(tx);
        if (++reads === 2) bothHaveRead.resolve();
        await bothHaveRead.promise;
        await sql`update pair set n = n + 1 where side = ${side}`.execute(tx);
      });
    await Promise.all([add('left'), add('right')]);
    const { rows } = await sql<{ n: number }>`select n from pair`.execute(store.db);
    expect(rows).toEqual([{ n: 2 }, { n: 2 }]);
  });
});
