import type { Kysely } from 'kysely';

/**
 * What was written of a built-in platform (`use`, and what is different here), from which its manifest was made: so that the manifest of a
 * later release can be made from the same. Null for a platform of one's own, and for versions of an earlier release.
 */
export async function platformEntries(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('platform_versions').addColumn('entry', 'text').execute();
}
