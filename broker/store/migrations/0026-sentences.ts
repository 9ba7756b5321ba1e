import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Description of a held call in one sentence, generated when the call is held; sealed, because it quotes the request. Null: held before this
 * migration.
 */
export async function sentences(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('sentence', sql.raw(types.bytes)).execute();
}
