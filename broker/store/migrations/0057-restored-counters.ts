import type { Kysely } from 'kysely';

/**
 * The signature counter of a passkey as in a restored backup, until the passkey is first used again: its counters since the backup are
 * unknown. Null for any other passkey.
 */
export async function restoredCounters(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('passkeys').addColumn('restored_counter', 'bigint').execute();
}
