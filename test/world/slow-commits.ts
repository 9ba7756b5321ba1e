/** Transactions on PostgreSQL that take a second to commit, as with a slow disk or a synchronous standby. */
import { sql } from 'kysely';
import { expect } from 'vitest';
import type { Db } from '../../broker/store/store.ts';

/** Makes commits that insert into, or update, this table take a second. */
export async function slowCommits(db: Db, table: string, on: 'insert' | 'update' = 'insert'): Promise<void> {
  await sql
    .raw(
      `create function slow_${table}() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return null; end $$;
       create constraint trigger slow after ${on} on ${table} deferrable initially deferred for each row execute function slow_${table}()`,
    )
    .execute(db);
}

/** Resolves while at least so many transactions of this database commit. */
export async function untilCommitting(db: Db, count = 1): Promise<void> {
  const committing = async () => {
    const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
      where datname = current_database() and state = 'active' and lower(query) = 'commit'`.execute(db);
    return rows[0]?.n;
  };
  await expect.poll(committing).toBeGreaterThanOrEqual(count);
}
