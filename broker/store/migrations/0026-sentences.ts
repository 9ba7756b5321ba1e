import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * What a held call does, in a sentence, made when the call is held; sealed, because it quotes the request. Null: it was held before
 * that was stored.
 */
export async function sentences(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('sentence', sql.raw(types.bytes)).execute();
}
