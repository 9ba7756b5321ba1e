import type { Kysely } from 'kysely';

/** The owner who made a one-time token: it ends when that owner is removed, or loses the role for it. */
export async function tokenMakers(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('one_time_tokens').addColumn('made_by', 'text').execute();
}
