import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/**
 * Counts of rate limits that processes share, of one window each. On PostgreSQL without a log: a crash of the database forgets a minute of
 * counts, and in return none of them waits for a disk. Nothing writes here on SQLite, which one process has to itself.
 */
export async function rateCounts(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await sql`create ${sql.raw(dialect === 'postgres' ? 'unlogged table' : 'table')} rate_counts (
    key text not null primary key,
    count bigint not null,
    until bigint not null
  )`.execute(db);
}
