/** Where audits are pushed to (migration 0045), and how far each receiver has them. */
import { sql } from 'kysely';
import type { Db } from './store.ts';
import type { LeaseTable } from './tables/installation.ts';
import type { AuditSinkTable } from './tables/receipt-log.ts';

export type SinkRef = Pick<AuditSinkTable, 'organisation_id' | 'id'>;
/** `log_size`: rows in the receipt log of its organisation. */
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
 * Sinks of all organisations that rows wait for and that may be sent to now. `until`: no sink waits for longer, but one that failed by a clock that
 * was ahead. Of a restored store none is before it was reviewed: it may be a copy, and whoever has the other one is pushing.
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
    // Those that failed are tried in turn.
    .orderBy('s.retry_at')
    .execute();
}

/** The index in the receipt log up to which every active sink of an organisation has the rows; undefined: it has no such sink. */
export async function pushedTo(db: Db, organisationId: string): Promise<number | undefined> {
  const { next } = await db
    .selectFrom('audit_sinks')
    .select((eb) => eb.fn.min('next_index').as('next'))
    .where('organisation_id', '=', organisationId)
    .where('status', '=', 'active')
    .executeTakeFirstOrThrow();
  return next === null ? undefined : Number(next);
}

/** What every new sink begins with. */
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

/** Stores a new sink. Answers false when the organisation has one of that name. */
export async function addSink(db: Db, sink: AuditSinkTable): Promise<boolean> {
  const added = await db
    .insertInto('audit_sinks')
    .values(sink)
    .onConflict((c) => c.columns(['organisation_id', 'name']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return added !== undefined;
}

/** Changes a sink; what is left out stays. */
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

/** A batch of a sink: rows of the receipt log from `next_index` up to, and without, `end`. */
type BatchRef = SinkRef & Pick<AuditSinkTable, 'next_index'>;

/** Only while this process holds the lease, and where the cursor still stands there. */
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

/** Says which batch is sent next. False: it is not this process that sends, or the cursor was moved. */
export async function beginBatch(db: Db, batch: BatchRef, end: number, lease: Lease): Promise<boolean> {
  return (await guarded(db, batch, lease).set({ batch_end: end }).executeTakeFirst()) !== undefined;
}

/** The batch that was begun up to `end` ends before the row `shorterEnd` instead. False: as of `beginBatch`, or it has another end by now. */
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

/** The receiver has the batch. `rejected`: rows that it said it does not keep, with `why`. False: as of `beginBatch`. */
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

/** The batch did not arrive. `why`: our own words. False: as of `beginBatch`. */
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

/** Of all organisations, by kind: the rows that wait for the sink that is furthest behind, and how many sinks do not take any. */
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
