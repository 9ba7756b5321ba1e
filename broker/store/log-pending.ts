/** Final audit rows that wait for their index in the receipt log, written by the triggers of audit rows (migrations 0041, 0054). */
import { type RawBuilder, sql } from 'kysely';
import type { Db, Store } from './store.ts';
import type { LogBatchTable } from './tables/receipt-log.ts';

/** Condition that excludes these organisations. */
const butOf = (organisations: readonly string[]) =>
  organisations.length === 0 ? sql`true` : sql`organisation_id not in (${sql.join(organisations)})`;

/** Whether any row waits for its index. `without`: organisations whose rows are not processed. */
export async function hasPending(db: Db, without: readonly string[] = []): Promise<boolean> {
  const others = butOf(without);
  const { rows } = await sql<{ waiting: number | null }>`
    select coalesce((select 1 from log_pending where ${others} limit 1), (select 1 from log_batches where ${others} limit 1)) as waiting`.execute(
    db,
  );
  return rows[0]?.waiting != null;
}

/** Pending rows: their concatenated ids (36 characters each) and hashes (64 each), and the latest finish time among them. */
export type PendingRows = Pick<LogBatchTable, 'organisation_id' | 'rows' | 'ids' | 'row_hashes' | 'last_at'>;

/**
 * Deletes and returns committed rows, in any order, in the transaction that assigns their indexes: up to `limit` entries, each a row or the
 * rows that one statement wrote. `isFull`: there may be more. `without`: as for `hasPending`.
 */
export async function takePending(
  db: Db,
  { dialect }: Pick<Store, 'dialect'>,
  limit: number,
  without: readonly string[] = [],
): Promise<{ pending: PendingRows[]; isFull: boolean }> {
  const others = butOf(without);
  const single = await (dialect === 'sqlite' ? takeBelow(db, limit, others) : takeAt(db, limit, others));
  if (dialect === 'sqlite' || single.length === limit) return { pending: single, isFull: single.length === limit };
  const { rows } = await sql<PendingRows>`delete from log_batches
    where ctid = any (array(select ctid from log_batches where ${others} limit ${limit - single.length}))
    returning organisation_id, rows, ids, row_hashes, last_at`.execute(db);
  const batches = rows.map((row) => ({ ...row, rows: Number(row.rows), last_at: Number(row.last_at) }));
  return { pending: [...single, ...batches], isFull: single.length + batches.length === limit };
}

/** SQLite has a single writer, which is this transaction, so the rows read and the rows deleted up to the last of them are the same. */
async function takeBelow(db: Db, limit: number, others: RawBuilder<unknown>): Promise<PendingRows[]> {
  const { rows } = await sql<PendingRows & { rowid: number }>`
    select rowid, organisation_id, 1 as rows, row_id as ids, row_hash as row_hashes, finished_at as last_at
    from log_pending where ${others} order by rowid limit ${limit}`.execute(db);
  const last = rows.at(-1);
  if (last) await sql`delete from log_pending where rowid <= ${last.rowid} and ${others}`.execute(db);
  return rows;
}

/** Deletes by physical position (ctid): rows that live for a second need no index. With an array PostgreSQL goes directly to each position. */
async function takeAt(db: Db, limit: number, others: RawBuilder<unknown>): Promise<PendingRows[]> {
  const { rows } = await sql<PendingRows>`delete from log_pending
    where ctid = any (array(select ctid from log_pending where ${others} limit ${limit}))
    returning organisation_id, 1 as rows, row_id as ids, row_hash as row_hashes, finished_at as last_at`.execute(db);
  return rows.map((row) => ({ ...row, last_at: Number(row.last_at) }));
}

/** Counts the pending rows of an organisation. `since`: the earliest finish time among them; null when there are none. */
export async function countPending(db: Db, organisationId: string): Promise<{ rows: number; since: number | null }> {
  const found = await sql<{ rows: number | null; since: number | null }>`
    select sum(rows) as rows, min(since) as since from (
      select count(*) as rows, min(finished_at) as since from log_pending where organisation_id = ${organisationId}
      union all
      select coalesce(sum(rows), 0), min(first_at) from log_batches where organisation_id = ${organisationId}
    ) as waiting`.execute(db);
  const { rows = 0, since = null } = found.rows[0] ?? {};
  return { rows: Number(rows), since: since === null ? null : Number(since) };
}
