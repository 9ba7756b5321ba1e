import type { Kysely } from 'kysely';

/** Where a registered client came from, so that a flood from some networks pushes out none that came from another. */
export async function clientSources(db: Kysely<unknown>): Promise<void> {
  // Of clients only. Null: registered before this migration.
  await db.schema.alterTable('oauth_records').addColumn('source', 'text').execute();
}
