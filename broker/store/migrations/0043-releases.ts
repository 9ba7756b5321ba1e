import type { Kysely } from 'kysely';

/** Which release each process runs, to tell whether an older one still needs what a contraction takes away; null: an older one than this. */
export async function releases(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('instances').addColumn('release', 'text').execute();
}
