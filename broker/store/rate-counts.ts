/** Counts of rate limits that all processes on a PostgreSQL share (migration 0046). */
import { sql } from 'kysely';
import { sha256Hex } from '../crypto/canonical.ts';
import { present } from '../runtime/present.ts';
import type { SharedCounter } from '../runtime/window-counts.ts';
import type { Db } from './store.ts';

/** An index takes no long text, and one key that it refuses would fail the report of all. */
const MOST_CHARACTERS = 256;
const storedKey = (key: string): string => (key.length <= MOST_CHARACTERS ? key : sha256Hex(key));

/**
 * All keys in one statement, and windows by PostgreSQL's clock, whatever those of the processes say; one that ends later than any that begins now is of that clock
 * when it was ahead, and over. Sorted, so that two processes that
 * report the same keys wait for each other instead of locking each other out.
 */
export const postgresCounter = (db: Db): SharedCounter => ({
  add: async (uses, windowMs) => {
    const stored = uses.map(({ key, count }) => ({ key: storedKey(key), count }));
    // Twice its length: the clock may go back by a little while it is set right.
    const isOver = sql`counts.until not between excluded.until - ${windowMs} + 1 and excluded.until + ${windowMs}`;
    const sorted = stored.toSorted((a, b) => (a.key < b.key ? -1 : 1));
    const { rows } = await sql<{ key: string; count: number; left_ms: number }>`
      with now as (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms)
      insert into rate_counts as counts (key, count, until)
        select key, count, now.ms + ${windowMs}
        from unnest(${sorted.map(({ key }) => key)}::text[], ${sorted.map(({ count }) => count)}::bigint[]) as uses (key, count), now
      on conflict (key) do update set
        count = case when ${isOver} then excluded.count else counts.count + excluded.count end,
        until = case when ${isOver} then excluded.until else counts.until end
      returning key, count, until - (select ms from now) as left_ms`.execute(db);
    const counted = new Map(rows.map(({ key, count, left_ms }) => [key, { count, leftMs: left_ms }]));
    return stored.map(({ key }) => present(counted.get(key), 'count'));
  },
  close: async () => {},
});

/** Deletes counts whose window ended before `before`, by the store's clock. */
export async function purgeRateCounts(db: Db, before: number): Promise<void> {
  await db.deleteFrom('rate_counts').where('until', '<', before).execute();
}
