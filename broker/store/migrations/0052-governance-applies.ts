import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * The last applies of governance files, each with what was in force before it as a file (compressed), so that an owner can look at
 * going back to it. Such a file holds no secrets, but where they came from.
 */
export async function governanceApplies(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('governance_applies')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    // Of the audit row `governance_applied`, so in the order of time.
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('made_by', 'text', (c) => c.notNull())
    .addColumn('how', 'text', (c) => c.notNull())
    .addColumn('detail', 'text')
    .addColumn('change_count', 'integer', (c) => c.notNull())
    .addColumn('changes', 'text', (c) => c.notNull())
    // Null: it was longer than a file may be.
    .addColumn('file_before', sql.raw(types.bytes))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('governance_applies_key', ['organisation_id', 'id'])
    .execute();
}
