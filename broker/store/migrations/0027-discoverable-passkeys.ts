import type { Kysely } from 'kysely';

/**
 * Whether a passkey is discoverable, and so can sign its owner in. Null: unknown, for passkeys enrolled before this was requested; the first
 * assertion without a list of credentials sets it.
 */
export async function discoverablePasskeys(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('passkeys').addColumn('discoverable', 'integer').execute();
}
