import type { Kysely } from 'kysely';

/**
 * What the last test of a connection found. `tested_revision`: of the credential that was tested; the result says nothing about
 * another one. No column that decisions look at, so no fact version changes.
 */
export async function connectionTests(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('connections').addColumn('tested_at', 'bigint').execute();
  await db.schema.alterTable('connections').addColumn('tested_revision', 'integer').execute();
  await db.schema.alterTable('connections').addColumn('tested_ok', 'integer').execute();
  await db.schema.alterTable('connections').addColumn('tested_status', 'integer').execute();
  await db.schema.alterTable('connections').addColumn('tested_detail', 'text').execute();
}
