import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Sinks that the audit of an organisation is pushed to. `next_index`: index of the first row of its receipt log that the receiver has not
 * acknowledged. `batch_end`: exclusive end of the batch in flight; written before the batch is sent, so that a retry sends the same batch.
 */
export async function auditSinks(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('audit_sinks')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('kind', 'text', (c) => c.notNull())
    .addColumn('format', 'text', (c) => c.notNull())
    .addColumn('settings', 'text', (c) => c.notNull())
    .addColumn('secret', types.bytes)
    .addColumn('status', 'text', (c) => c.notNull().check(sql`status in ('active', 'paused')`))
    .addColumn('next_index', 'bigint', (c) => c.notNull())
    .addColumn('batch_end', 'bigint')
    .addColumn('rejected_rows', 'bigint', (c) => c.notNull())
    .addColumn('delivered_at', 'bigint')
    .addColumn('failing_since', 'bigint')
    .addColumn('failures', 'integer', (c) => c.notNull())
    .addColumn('last_error', 'text')
    .addColumn('retry_at', 'bigint')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('audit_sinks_key', ['organisation_id', 'id'])
    .addUniqueConstraint('audit_sinks_name', ['organisation_id', 'name'])
    .execute();
}
