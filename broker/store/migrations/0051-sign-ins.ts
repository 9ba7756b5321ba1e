import type { Kysely } from 'kysely';

/** Time of an owner's last sign-in. Neither decisions nor governance files depend on it, so no version changes. */
export async function signIns(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('owners').addColumn('last_sign_in_at', 'bigint').execute();
}
