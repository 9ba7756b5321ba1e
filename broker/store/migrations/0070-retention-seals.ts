import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Proof that an admin set an organisation's retention: sealed under the master key, which a person who can only write to the database does not
 * have. Existing retentions get theirs when the broker starts (retention-authenticity.ts).
 */
export async function retentionSeals(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema.alterTable('organisations').addColumn('retention_seal', sql.raw(types.bytes)).execute();
}
