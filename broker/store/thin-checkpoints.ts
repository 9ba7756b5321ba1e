/** Deletes all but the last checkpoint of each hour: a proof needs any one that covers its row, and tiles prove consistency with saved checkpoints. */
import { sql } from 'kysely';
import type { Instant } from '../policy/facts.ts';
import { pause } from '../runtime/waits.ts';
import { findMeta, putMeta } from './meta.ts';
import type { Db } from './store.ts';

const HOUR_MS = 3_600_000;
/** End of the processed hours, so that each hour is processed once, and none is skipped while no broker runs. */
const DONE = 'checkpoints_thinned_until';
/** Hours per round, since a store may have a large backlog. */
const BATCH_HOURS = 24;
/** Pause between two hours, so that calls are not delayed. */
const PAUSE_MS = 20;

/** Deletes checkpoints of whole hours before `until` that have a later one of the same log in the same hour; the oldest hours first, some per call. */
export async function thinCheckpoints(db: Db, until: Instant): Promise<void> {
  const end = until - (until % HOUR_MS);
  const done = Number((await findMeta(db, DONE)) ?? 0);
  if (done === end) return;
  // A stored time beyond the end was written by a clock that was ahead.
  let from = Math.min(done, end);
  for (let hours = 0; hours < BATCH_HOURS && from < end; hours++) {
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
