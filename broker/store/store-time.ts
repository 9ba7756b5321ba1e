/** The clock that all processes on a store share. */

import { sql } from 'kysely';
import { present } from '../runtime/present.ts';
import { findMeta, putMeta } from './meta.ts';
import type { Db } from './store.ts';

const NEWEST_HEARTBEAT = 'newest_beat';

/** PostgreSQL's time, in milliseconds since the epoch. */
export async function postgresTime(db: Db): Promise<number> {
  const { rows } = await sql<{ now: number }>`
    select (extract(epoch from clock_timestamp()) * 1000)::double precision as now`.execute(db);
  return present(rows[0], 'row').now;
}

/** Returns the time of the newest heartbeat of any process on this store; undefined when there was none. */
export async function findNewestHeartbeat(db: Db): Promise<number | undefined> {
  const value = await findMeta(db, NEWEST_HEARTBEAT);
  return value === undefined ? undefined : Number(value);
}

/** Records the time of a heartbeat. */
export async function storeNewestHeartbeat(db: Db, now: number): Promise<void> {
  await putMeta(db, NEWEST_HEARTBEAT, String(now));
}
