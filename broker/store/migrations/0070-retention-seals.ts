import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * What shows of an organisation's retention that an admin set it: sealed under the master key, which nobody has who can only write to the database. That
 * of before gets its own when the broker starts (retention-authenticity.ts).
 */
export async function retentionSeals(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema.alterTable('organisations').addColumn('retention_seal', sql.raw(types.bytes)).execute();
}
