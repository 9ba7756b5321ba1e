import type { Kysely } from 'kysely';

/** The release of each process, to detect an older one that still needs what a contraction removes; null: older than this migration. */
export async function releases(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('instances').addColumn('release', 'text').execute();
}
