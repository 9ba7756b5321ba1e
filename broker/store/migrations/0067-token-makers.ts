import type { Kysely } from 'kysely';

/** Who made a one-time token: what an owner made ends when that owner is removed, or may make it no longer. */
export async function tokenMakers(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('one_time_tokens').addColumn('made_by', 'text').execute();
}
