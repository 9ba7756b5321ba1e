import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/**
 * Counters of rate limits shared by processes, one window each. Unlogged on PostgreSQL: a crash of the database loses a minute of counts, and
 * in return no write waits for the disk. Unused on SQLite, which only one process uses.
 */
export async function rateCounts(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await sql`create ${sql.raw(dialect === 'postgres' ? 'unlogged table' : 'table')} rate_counts (
    key text not null primary key,
    count bigint not null,
    until bigint not null
  )`.execute(db);
}
