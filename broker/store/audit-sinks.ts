/** Sinks that the audit is pushed to (migration 0045), and how far each receiver has it. */
import { sql } from 'kysely';
import type { Db } from './store.ts';
import type { LeaseTable } from './tables/installation.ts';
import type { AuditSinkTable } from './tables/receipt-log.ts';

export type SinkRef = Pick<AuditSinkTable, 'organisation_id' | 'id'>;
/** A sink with `log_size`, the number of rows in its organisation's receipt log. */
export type SinkWithLog = AuditSinkTable & { log_size: number };

const withLog = (db: Db) =>
  db
    .selectFrom('audit_sinks as s')
    .leftJoin('receipt_logs as l', 'l.organisation_id', 's.organisation_id')
    .selectAll('s')
    .select((eb) => eb.fn.coalesce('l.size', sql.lit(0)).as('log_size'));

/** An organisation's sinks, by name. */
export async function listSinks(db: Db, organisationId: string): Promise<SinkWithLog[]> {
  return await withLog(db).where('s.organisation_id', '=', organisationId).orderBy('s.name').execute();
}

/** One sink of an organisation, or undefined. */
export async function findSink(db: Db, { organisation_id, id }: SinkRef): Promise<SinkWithLog | undefined> {
  return await withLog(db).where('s.organisation_id', '=', organisation_id).where('s.id', '=', id).executeTakeFirst();
}

/**
 * Lists sinks of all organisations that have rows to send and are due. A retry time after `until` is ignored: it was set by a clock that was
 * ahead. Restored stores are excluded until they are reviewed: they may be a copy, while the original keeps pushing.
 */
export async function listDueSinks(db: Db, { now, until }: { now: number; until: number }): Promise<SinkRef[]> {
  return await db
    .selectFrom('audit_sinks as s')
    .innerJoin('receipt_logs as l', 'l.organisation_id', 's.organisation_id')
    .innerJoin('organisations as o', 'o.id', 's.organisation_id')
    .select(['s.organisation_id', 's.id'])
    .where('o.restored', 'is', null)
    .where('s.status', '=', 'active')
    .where((eb) => eb.or([eb('s.retry_at', 'is', null), eb('s.retry_at', '<=', now), eb('s.retry_at', '>', until)]))
    .whereRef('s.next_index', '<', 'l.size')
    // Failed sinks are retried in turn.
    .orderBy('s.retry_at')
    .execute();
}

/** Returns the index in the receipt log up to which all active sinks of an organisation have received rows; undefined: no active sink. */
export async function pushedTo(db: Db, organisationId: string): Promise<number | undefined> {
  const { next } = await db
    .selectFrom('audit_sinks')
    .select((eb) => eb.fn.min('next_index').as('next'))
    .where('organisation_id', '=', organisationId)
    .where('status', '=', 'active')
    .executeTakeFirstOrThrow();
  return next === null ? undefined : Number(next);
}

/** Returns a sink with the initial state. */
export const newSink = <Given extends Partial<AuditSinkTable>>(given: Given) => ({
  secret: null,
  secret_reference: null,
  status: 'active' as const,
  batch_end: null,
  rejected_rows: 0,
  delivered_at: null,
  failing_since: null,
  failures: 0,
  last_error: null,
  retry_at: null,
  ...given,
});

/** Stores a new sink. False: the organisation has a sink of that name. */
export async function addSink(db: Db, sink: AuditSinkTable): Promise<boolean> {
  const added = await db
    .insertInto('audit_sinks')
    .values(sink)
    .onConflict((c) => c.columns(['organisation_id', 'name']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return added !== undefined;
}

/** Changes a sink; absent members stay as they are. */
export async function changeSink(
  db: Db,
  { organisation_id, id }: SinkRef,
  change: Partial<Omit<AuditSinkTable, 'organisation_id' | 'id' | 'created_at'>>,
): Promise<void> {
  await db
    .updateTable('audit_sinks')
    .set(change)
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .execute();
}

/** Deletes a sink. */
export async function deleteSink(db: Db, { organisation_id, id }: SinkRef): Promise<void> {
  await db.deleteFrom('audit_sinks').where('organisation_id', '=', organisation_id).where('id', '=', id).execute();
}

type Lease = Pick<LeaseTable, 'name' | 'fence'>;

/** A batch of a sink: starts at the row `next_index` of the receipt log. Its `end` is exclusive. */
type BatchRef = SinkRef & Pick<AuditSinkTable, 'next_index'>;

/** Updates a sink only while this process holds the lease and the cursor is still at `next_index`. */
const guarded = (db: Db, { organisation_id, id, next_index }: BatchRef, { name, fence }: Lease) =>
  db
    .updateTable('audit_sinks')
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where('next_index', '=', next_index)
    .where((eb) =>
      eb.exists(
        eb.selectFrom('leases').select('leases.name').where('leases.name', '=', name).where('fence', '=', fence),
      ),
    )
    .returning('id');

/** Stores which batch is sent next. False: this process has lost the lease, or the cursor was moved. */
export async function beginBatch(db: Db, batch: BatchRef, end: number, lease: Lease): Promise<boolean> {
  return (await guarded(db, batch, lease).set({ batch_end: end }).executeTakeFirst()) !== undefined;
}

/** Shortens the begun batch from `end` to `shorterEnd`. False: as for `beginBatch`, or the batch has another end now. */
export async function shortenBatch(
  db: Db,
  batch: BatchRef,
  { end, shorterEnd }: { end: number; shorterEnd: number },
  lease: Lease,
): Promise<boolean> {
  const shortened = await guarded(db, batch, lease)
    .where('batch_end', '=', end)
    .set({ batch_end: shorterEnd })
    .executeTakeFirst();
  return shortened !== undefined;
}

/** Records that the receiver has the batch. `rejected`: number of rows it refused permanently, with `why`. False: as for `beginBatch`. */
export async function finishBatch(
  db: Db,
  batch: BatchRef,
  { end, now, rejected, why }: { end: number; now: number; rejected: number; why: string | null },
  lease: Lease,
): Promise<boolean> {
  const moved = await guarded(db, batch, lease)
    .where('batch_end', '=', end)
    .set((eb) => ({
      next_index: end,
      batch_end: null,
      rejected_rows: eb('rejected_rows', '+', rejected),
      delivered_at: now,
      failing_since: null,
      failures: 0,
      last_error: why,
      retry_at: null,
    }))
    .executeTakeFirst();
  return moved !== undefined;
}

/** Records that the batch did not arrive. `why`: the broker's own text. False: as for `beginBatch`. */
export async function failBatch(
  db: Db,
  batch: BatchRef,
  { now, why, retryAt }: { now: number; why: string; retryAt: number },
  lease: Lease,
): Promise<boolean> {
  const noted = await guarded(db, batch, lease)
    .set((eb) => ({
      failures: eb('failures', '+', 1),
      failing_since: eb.fn.coalesce('failing_since', sql.lit(now)),
      last_error: why,
      retry_at: retryAt,
    }))
    .executeTakeFirst();
  return noted !== undefined;
}

/** Returns per kind, for all organisations: the backlog of the sink that is furthest behind, and the number of failing sinks. */
export async function sinkNumbers(db: Db): Promise<{ kind: string; behind: number; failing: number }[]> {
  const found = await db
    .selectFrom('audit_sinks as s')
    .leftJoin('receipt_logs as l', 'l.organisation_id', 's.organisation_id')
    .select((eb) => [
      's.kind',
      eb.fn.max(sql<number>`coalesce(l.size, 0) - s.next_index`).as('behind'),
      eb.fn.count<number>('s.failing_since').as('failing'),
    ])
    .where('s.status', '=', 'active')
    .groupBy('s.kind')
    .execute();
  return found.map(({ kind, behind, failing }) => ({
    kind,
    behind: Math.max(0, Number(behind)),
    failing: Number(failing),
  }));
}
