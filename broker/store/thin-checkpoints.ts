/** Keeping the last checkpoint of each hour alone: proofs need one that covers their row, any one. Tiles prove consistency with those that somebody kept. */
import { sql } from 'kysely';
import type { Instant } from '../policy/facts.ts';
import { pause } from '../runtime/waits.ts';
import { findMeta, putMeta } from './meta.ts';
import type { Db } from './store.ts';

const HOUR_MS = 3_600_000;
/** Up to when it is done, so that each hour is looked at once, and none is left out by a broker that did not run. */
const DONE = 'checkpoints_thinned_until';
/** In one round, for a store that has many hours of before. */
const HOURS_AT_ONCE = 24;
/** Between two hours, for the calls. */
const PAUSE_MS = 20;

/** Deletes checkpoints made in whole hours before `until` that the same log has another one after in the same hour: of some hours, the oldest first. */
export async function thinCheckpoints(db: Db, until: Instant): Promise<void> {
  const end = until - (until % HOUR_MS);
  const done = Number((await findMeta(db, DONE)) ?? 0);
  if (done === end) return;
  // Beyond the end a clock was that was ahead.
  let from = Math.min(done, end);
  for (let hours = 0; hours < HOURS_AT_ONCE && from < end; hours++) {
    const next = await oldestCheckpoint(db, from, end);
    if (next !== undefined) await thinHour(db, next - (next % HOUR_MS));
    from = next === undefined ? end : next - (next % HOUR_MS) + HOUR_MS;
    await pause(PAUSE_MS);
  }
  await putMeta(db, DONE, String(from));
}

async function oldestCheckpoint(db: Db, from: Instant, until: Instant): Promise<Instant | undefined> {
  const oldest = await db
    .selectFrom('log_checkpoints')
    .select('at')
    .where('at', '>=', from)
    .where('at', '<', until)
    .orderBy('at')
    .limit(1)
    .executeTakeFirst();
  return oldest && Number(oldest.at);
}

async function thinHour(db: Db, from: Instant): Promise<void> {
  const isInHour = sql`at >= ${from} and at < ${from + HOUR_MS}`;
  await sql`delete from log_checkpoints where ${isInHour} and (organisation_id, size) not in
    (select organisation_id, max(size) from log_checkpoints where ${isInHour} group by organisation_id)`.execute(db);
}
