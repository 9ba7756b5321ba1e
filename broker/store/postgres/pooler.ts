/** Poolers in front of PostgreSQL, such as PgBouncer. */
import { sql } from 'kysely';
import type { Db, Store } from '../store.ts';

const ROUNDS = 3;

/**
 * Throws a readable error when a pooler runs each transaction on an arbitrary free server connection. Prepared statements, session locks and
 * LISTEN belong to one server connection: calls would fail at random, and a statement of another release could run under the name of one of
 * this release.
 *
 * Detected by the PostgreSQL backend processes of two connections, one of them in a transaction: without such a pooler the processes differ,
 * and stay the same.
 */
export async function refuseTransactionPooler(store: Store): Promise<void> {
  const own = store.untimed?.();
  if (own === undefined) return;
  try {
    await store.db.connection().execute((one) => own.db.connection().execute((another) => comparing(one, another)));
  } finally {
    await own.close();
  }
}

async function comparing(one: Db, another: Db): Promise<void> {
  for (let round = 0; round < ROUNDS; round++) {
    const before = await serverOf(one);
    const [others, after] = await another
      .transaction()
      .execute(async (tx) => [await serverOf(tx), await serverOf(one)] as const);
    if (before !== after || others === before) throw new Error(REFUSED);
  }
}

const REFUSED =
  'DATABASE_URL leads to a pooler that gives each transaction another connection to PostgreSQL (PgBouncer with pool_mode = transaction, and the pooled addresses of many hosts). ' +
  'The broker keeps prepared statements, locks and LISTEN on its connections. Give the address of PostgreSQL itself, or of a pool with pool_mode = session; ' +
  'DATABASE_CONNECTIONS limits how many a process takes.';

async function serverOf(db: Db): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db);
  return rows[0]?.pid ?? 0;
}
