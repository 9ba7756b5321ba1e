import type { Kysely } from 'kysely';

/** The browser in which a person's tokens were obtained: until they are kept, they are bound to this browser, even if others have the link. */
export async function obtainingBrowsers(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('person_tokens').addColumn('browser_hash', 'text').execute();
}
