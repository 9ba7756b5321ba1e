import type { Kysely } from 'kysely';

/** When the client of a held raw request was first told that there is no answer of a call that was or may have been made. */
export async function toldJoins(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('held_joins').addColumn('told_at', 'bigint').execute();
}
