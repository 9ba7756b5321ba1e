import type { Kysely } from 'kysely';

/**
 * The signature counter of a passkey as a restored backup had it, until the passkey is used for the first time since: which counters it had after the
 * backup is not known. Null for any other.
 */
export async function restoredCounters(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('passkeys').addColumn('restored_counter', 'bigint').execute();
}
