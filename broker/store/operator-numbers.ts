/** Numbers about all organisations, for whoever runs the broker. */
import { sql } from 'kysely';
import type { Instant } from '../policy/facts.ts';
import { findLastBackup } from './last-backup.ts';
import type { Db } from './store.ts';

export type OperatorNumbers = {
  /** Calls that wait for a person. */
  pending: number;
  /** When the first of them was held; undefined: none waits. */
  oldestPending: Instant | undefined;
  openBreakers: number;
  /** Calls in flight for longer than `stalled`. */
  stalledIntents: number;
  /** Notices that no channel got yet. */
  notices: number;
  /** Audit rows without a place in their receipt log, 10,000 at most. */
  unlogged: number;
  /** When the call of the first of them ended; undefined: there is none. */
  oldestUnlogged: Instant | undefined;
  /** When the last row of the first tile ended that has rows which no checkpoint covers; undefined: all are covered. */
  oldestUnsigned: Instant | undefined;
  /** Undefined: `agent-broker backup` made none. */
  lastBackup: Instant | undefined;
};

/** There may be millions after an upgrade, and SQLite counts them while everything else waits. */
const MOST_UNLOGGED = 10_000;

type Column =
  | 'pending'
  | 'oldest'
  | 'breakers'
  | 'stalled'
  | 'notices'
  | 'unlogged'
  | 'unlogged_since'
  | 'unsigned_since';

/** Counts by indexes, in one statement beside a look at the last backup. `stalledBefore`: intents of calls that began earlier are counted. */
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
      (select count(*) from notices) as notices,
      (select count(*) from (select 1 from log_pending limit ${MOST_UNLOGGED}) as some_rows)
        + (select coalesce(sum(rows), 0) from (select rows from log_batches limit ${MOST_UNLOGGED}) as some_batches) as unlogged,
      (select min(since) from (
        select min(finished_at) as since from (select finished_at from log_pending limit ${MOST_UNLOGGED}) as some_rows
        union all
        select min(first_at) from (select first_at from log_batches limit ${MOST_UNLOGGED}) as some_batches
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
