/** Metrics of all organisations, for the operator. */
import { sql } from 'kysely';
import type { Instant } from '../policy/facts.ts';
import { findLastBackup } from './last-backup.ts';
import type { Db } from './store.ts';

export type OperatorNumbers = {
  /** Held calls that wait for a decision. */
  pending: number;
  /** When the oldest of these was held; undefined: none is pending. */
  oldestPending: Instant | undefined;
  openBreakers: number;
  /** Calls in flight since before `stalledBefore`. */
  stalledIntents: number;
  /** Notices in the outbox, and messages that are due or failed, 10,000 of either at most. What waits for the end of quiet hours is not due. */
  notices: number;
  /** Audit rows without an index in their receipt log, 10,000 at most. */
  unlogged: number;
  /** Earliest finish time of these rows; undefined: there are none. */
  oldestUnlogged: Instant | undefined;
  /** Finish time of the last row of the first log tile that no checkpoint covers completely; undefined: all rows are covered. */
  oldestUnsigned: Instant | undefined;
  /** Undefined: no backup was made by `agent-broker backup`. */
  lastBackup: Instant | undefined;
};

/** Limit of the count: after an upgrade there may be millions, and on SQLite counting blocks everything else. */
const MAX_UNLOGGED = 10_000;
const MAX_NOTICES = 10_000;

type Column =
  | 'pending'
  | 'oldest'
  | 'breakers'
  | 'stalled'
  | 'notices'
  | 'unlogged'
  | 'unlogged_since'
  | 'unsigned_since';

/** Counts by indexes, in one statement, plus a read of the last backup. `stalledBefore`: intents of calls that began earlier are counted. */
export async function operatorNumbers(
  db: Db,
  { now, stalledBefore }: { now: Instant; stalledBefore: Instant },
): Promise<OperatorNumbers> {
  const lastBackup = await findLastBackup(db);
  const { rows } = await sql<Record<Column, number | string | null>>`
    select (select count(*) from approvals where status = 'pending' and expires_at > ${now}) as pending,
      (select min(created_at) from approvals where status = 'pending' and expires_at > ${now}) as oldest,
      (select count(*) from breakers where open_until > ${now}) as breakers,
      (select count(*) from audit_rows where state = 'intent' and created_at < ${stalledBefore}) as stalled,
      (select count(*) from (select 1 from notices limit ${MAX_NOTICES}) as some_notices)
        + (select count(*) from (
          select 1 from notice_deliveries where state = 'due' and (due_at <= ${now} or attempts > 0) limit ${MAX_NOTICES}
        ) as some_deliveries) as notices,
      (select count(*) from (select 1 from log_pending limit ${MAX_UNLOGGED}) as some_rows)
        + (select coalesce(sum(rows), 0) from (select rows from log_batches limit ${MAX_UNLOGGED}) as some_batches) as unlogged,
      (select min(since) from (
        select min(finished_at) as since from (select finished_at from log_pending limit ${MAX_UNLOGGED}) as some_rows
        union all
        select min(first_at) from (select first_at from log_batches limit ${MAX_UNLOGGED}) as some_batches
      ) as waiting) as unlogged_since,
      (select min(last_at) from receipt_logs join log_entries on log_entries.organisation_id = receipt_logs.organisation_id
        and tile_index = coalesce(checkpoint_size, 0) / 256
        where size > coalesce(checkpoint_size, 0)) as unsigned_since`.execute(db);
  const [row] = rows;
  const number = (value: number | string | null | undefined): number => Number(value ?? 0);
  return {
    pending: number(row?.pending),
    oldestPending: row?.oldest == null ? undefined : number(row.oldest),
    openBreakers: number(row?.breakers),
    stalledIntents: number(row?.stalled),
    notices: number(row?.notices),
    unlogged: number(row?.unlogged),
    oldestUnlogged: row?.unlogged_since == null ? undefined : number(row.unlogged_since),
    oldestUnsigned: row?.unsigned_since == null ? undefined : number(row.unsigned_since),
    lastBackup,
  };
}
