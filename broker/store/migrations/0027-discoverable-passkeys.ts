import type { Kysely } from 'kysely';

/**
 * Whether a passkey is discoverable, and so can sign its owner in. Null: not known, of those that were enrolled before this was asked
 * for; the first assertion without a list of credentials shows it.
 */
export async function discoverablePasskeys(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('passkeys').addColumn('discoverable', 'integer').execute();
}
