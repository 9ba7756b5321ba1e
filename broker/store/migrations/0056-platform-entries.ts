import type { Kysely } from 'kysely';

/**
 * The entry of a built-in platform in a file (`use` and its overrides), from which its manifest was generated, so that a later release can
 * generate its manifest from the same entry. Null for a custom platform, and for versions of an earlier release.
 */
export async function platformEntries(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('platform_versions').addColumn('entry', 'text').execute();
}
