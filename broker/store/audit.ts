/** Audit rows: normalised for storage, inserted, finalised once, then immutable. */
import type { Kysely } from 'kysely';
import type { AppendStatement } from './appender.ts';
import { AUDIT_COLUMNS, type AuditTable } from './audit-columns.ts';
import type { Schema } from './schema.ts';
import type { Db, Store } from './store.ts';

export type AuditRow = AuditTable;

/** Larger batches are not faster. */
const LARGEST_BATCH = 64;

/** Columns that an outcome overwrites in its intent: all but the key, so that the stored row is the one that was signed. */
const OUTCOME_COLUMNS = AUDIT_COLUMNS.filter((column) => column !== 'organisation_id' && column !== 'id');

/**
 * One statement for every write: a new final row, an intent, and the outcome of an intent. The outcome is an upsert that updates only an
 * intent, so a row is finalised once, also under concurrency, and retrying a write with unknown result (connection lost at commit) is
 * idempotent.
 */
export function auditStatement(db: Kysely<Schema>, rows: number): AppendStatement {
  const columns = AUDIT_COLUMNS.length;
  // Each value is its own index, to check below that the statement has its parameters in this order.
  const { sql, parameters } = db
    .insertInto('audit_rows')
    .values(
      Array.from({ length: rows }, (_, row) =>
        Object.fromEntries(AUDIT_COLUMNS.map((column, at) => [column, row * columns + at])),
      ) as unknown as AuditTable[],
    )
    .onConflict((conflict) =>
      conflict
        .columns(['organisation_id', 'id'])
        .doUpdateSet((eb) =>
          Object.fromEntries(
            OUTCOME_COLUMNS.map((column) => [column, eb.ref(`excluded.${column}` as 'excluded.state')]),
          ),
        )
        .where('audit_rows.state', '=', 'intent'),
    )
    .returning('id')
    .compile();
  const values = rows * columns;
  if (parameters.some((place, at) => at < values && place !== at))
    throw new Error('The parameters of the statement are out of order.');
  const copy = `copy audit_rows (${AUDIT_COLUMNS.join(', ')}) from stdin`;
  return { name: `audit_${rows}`, sql, rest: parameters.slice(values), copy };
}

/**
 * Size of the next batch, given the number of waiting rows. PostgreSQL prepares a statement for each size, on each connection:
 * all sizes would take 25 MB, these (20 of them, none less than four fifths of the waiting rows) take 7 MB.
 */
export function batchSize({ dialect }: Pick<Store, 'dialect'>, waiting: number): number {
  const most = Math.min(waiting, LARGEST_BATCH);
  if (dialect === 'sqlite') return most;
  const quarterOfPowerOfTwo = 1 << Math.max(0, 29 - Math.clz32(most));
  return most - (most % quarterOfPowerOfTwo);
}

/** Writes one row as part of a transaction (with an approval or an idempotency key). */
export async function putAuditRow(db: Db, row: AuditRow): Promise<boolean> {
  const written = await db
    .insertInto('audit_rows')
    .values(row)
    .onConflict((conflict) =>
      conflict
        .columns(['organisation_id', 'id'])
        .doUpdateSet(Object.fromEntries(OUTCOME_COLUMNS.map((column) => [column, row[column]])))
        .where('audit_rows.state', '=', 'intent'),
    )
    .returning('id')
    .executeTakeFirst();
  return written !== undefined;
}

/** Stores a row unless one with its id exists. Returns whether it did. */
export async function putNewAuditRow(db: Db, row: AuditRow): Promise<boolean> {
  const inserted = await db
    .insertInto('audit_rows')
    .values(row)
    .onConflict((conflict) => conflict.columns(['organisation_id', 'id']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/** One row of an organisation, or undefined. */
export async function findAuditRow(db: Db, organisationId: string, id: string): Promise<AuditRow | undefined> {
  return await db
    .selectFrom('audit_rows')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Returns the rows of an organisation with these ids, in any order; unknown ids are omitted. */
export async function findAuditRowsById(db: Db, organisationId: string, ids: readonly string[]): Promise<AuditRow[]> {
  if (ids.length === 0) return [];
  return await db
    .selectFrom('audit_rows')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', ids)
    .execute();
}

/** Returns up to `limit` intents of unregistered processes, oldest first. */
export async function findOrphanedIntents(db: Db, limit: number): Promise<AuditRow[]> {
  return await db
    .selectFrom('audit_rows')
    .selectAll()
    .where('state', '=', 'intent')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(selectFrom('instances').select('instances.id').whereRef('instances.id', '=', 'audit_rows.instance_id')),
      ),
    )
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Longer than any generated detail, and than texts of owners and agents. */
const MAX_DETAIL_LENGTH = 4_096;

/**
 * A text that both stores keep unchanged. PostgreSQL refuses NUL, and silently replaces lone surrogates: then the stored row would
 * differ from the signed one.
 */
export const storable = (text: string): string => text.replaceAll('\0', '\ufffd').toWellFormed();

/** Normalises every text of the row in place: they may contain any input of a caller, and refusals must be recordable. */
export function makeStorable(row: AuditRow): void {
  if (row.detail !== null && row.detail.length > MAX_DETAIL_LENGTH)
    row.detail = `${row.detail.slice(0, MAX_DETAIL_LENGTH)}…`;
  // Hot path: no allocation unless something has to be replaced.
  for (const column of AUDIT_COLUMNS) {
    const value = row[column];
    if (typeof value === 'string' && (value.includes('\0') || !value.isWellFormed()))
      Object.assign(row, { [column]: storable(value) });
  }
}
