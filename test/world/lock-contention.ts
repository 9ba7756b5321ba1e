/** Creates real races: concurrent requests wait in the database until several contend for the same row. */
import { sql } from 'kysely';
import { vi } from 'vitest';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import type { Db } from '../../broker/store/store.ts';
import type { World } from './world.ts';

/**
 * Runs `work` while another transaction locks the rows that `touch` writes, and releases them after `last` once `waiters` transactions wait. On
 * SQLite, where transactions are serialised, `work` just runs.
 */
export async function withLockContention<Answer>(
  { environment }: World,
  touch: (db: Db) => Promise<unknown>,
  work: () => Promise<Answer>,
  { waiters = 3, last }: { waiters?: number; last?: (db: Db) => Promise<unknown> } = {},
): Promise<Answer> {
  if (environment.DATABASE_URL === undefined) return await work();
  const outside = openPostgres(environment.DATABASE_URL, { connections: 6, onError: () => {} });
  try {
    let answers: Promise<Answer> | undefined;
    await outside.db.transaction().execute(async (tx) => {
      await touch(tx);
      answers = work();
      const waiting = async () => {
        const { rows } = await sql<{ count: string }>`select count(*) as count from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`.execute(outside.db);
        return Number(rows[0]!.count) >= waiters;
      };
      await vi.waitUntil(waiting, { timeout: 20_000, interval: 20 });
      await last?.(tx);
    });
    return await answers!;
  } finally {
    await outside.close();
  }
}
