import type { Kysely } from 'kysely';

/** When an owner signed in last. Nothing that decisions or governance files look at, so no version changes with it. */
export async function signIns(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('owners').addColumn('last_sign_in_at', 'bigint').execute();
}
