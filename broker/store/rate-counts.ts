/** Counters of rate limits, shared by all processes on one PostgreSQL database (migration 0046). */
import { sql } from 'kysely';
import { sha256Hex } from '../crypto/canonical.ts';
import { present } from '../runtime/present.ts';
import type { SharedCounter } from '../runtime/window-counts.ts';
import type { Db } from './store.ts';

/** Longer keys are hashed: an index rejects long values, and one rejected key would fail the whole batch. */
const MAX_CHARACTERS = 256;
const storedKey = (key: string): string => (key.length <= MAX_CHARACTERS ? key : sha256Hex(key));

/**
 * Counts all keys in one statement, with windows by PostgreSQL's clock, independent of the processes' clocks. A window that ends too far ahead
 * was started while that clock was ahead, and is treated as ended. Sorted, so that two processes that count the same keys do not deadlock.
 */
export const postgresCounter = (db: Db): SharedCounter => ({
  add: async (uses, windowMs) => {
    const stored = uses.map(({ key, count }) => ({ key: storedKey(key), count }));
    // Tolerates an end up to two window lengths ahead: the clock may be set back a little while it is synchronised.
    const hasEnded = sql`counts.until not between excluded.until - ${windowMs} + 1 and excluded.until + ${windowMs}`;
    const sorted = stored.toSorted((a, b) => (a.key < b.key ? -1 : 1));
    const { rows } = await sql<{ key: string; count: number; left_ms: number }>`
      with now as (select (extract(epoch from clock_timestamp()) * 1000)::bigint as ms)
      insert into rate_counts as counts (key, count, until)
        select key, count, now.ms + ${windowMs}
        from unnest(${sorted.map(({ key }) => key)}::text[], ${sorted.map(({ count }) => count)}::bigint[]) as uses (key, count), now
      on conflict (key) do update set
        count = case when ${hasEnded} then excluded.count else counts.count + excluded.count end,
        until = case when ${hasEnded} then excluded.until else counts.until end
      returning key, count, until - (select ms from now) as left_ms`.execute(db);
    const counted = new Map(rows.map(({ key, count, left_ms }) => [key, { count, leftMs: left_ms }]));
    return stored.map(({ key }) => present(counted.get(key), 'count'));
  },
  close: async () => {},
});

/** Deletes counters whose window ended before `before`, by the store's clock. */
export async function purgeRateCounts(db: Db, before: number): Promise<void> {
  await db.deleteFrom('rate_counts').where('until', '<', before).execute();
}
