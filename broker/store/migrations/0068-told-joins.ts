import type { Kysely } from 'kysely';

/** When the client of a held raw request was first answered that a call which was, or may have been, made has no result. */
export async function toldJoins(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('held_joins').addColumn('told_at', 'bigint').execute();
}
