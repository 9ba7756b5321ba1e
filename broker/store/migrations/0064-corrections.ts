import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/** Held calls that an owner corrected before they were decided: who did, when, and the agent's original request, sealed. */
export async function corrections(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('asked', sql.raw(types.bytes)).execute();
  await db.schema.alterTable('approvals').addColumn('corrected_by', 'text').execute();
  await db.schema.alterTable('approvals').addColumn('corrected_at', 'bigint').execute();
}
