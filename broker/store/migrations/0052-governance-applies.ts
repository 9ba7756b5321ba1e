import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Recent applies of governance files, each with a compressed file of what was in force before, so that an owner can consider reverting. Such
 * a file contains no secrets, only references to them.
 */
export async function governanceApplies(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('governance_applies')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    // Id of the audit row `governance_applied`, so it sorts by time.
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('made_by', 'text', (c) => c.notNull())
    .addColumn('how', 'text', (c) => c.notNull())
    .addColumn('detail', 'text')
    .addColumn('change_count', 'integer', (c) => c.notNull())
    .addColumn('changes', 'text', (c) => c.notNull())
    // Null: longer than a governance file may be.
    .addColumn('file_before', sql.raw(types.bytes))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('governance_applies_key', ['organisation_id', 'id'])
    .execute();
}
