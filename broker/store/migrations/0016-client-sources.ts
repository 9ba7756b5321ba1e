import type { Kysely } from 'kysely';

/** The network that a client registered from, so that a flood from some networks does not evict clients of another. */
export async function clientSources(db: Kysely<unknown>): Promise<void> {
  // For clients only. Null: registered before this migration.
  await db.schema.alterTable('oauth_records').addColumn('source', 'text').execute();
}
