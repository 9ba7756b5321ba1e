import type { Kysely } from 'kysely';

/**
 * The result of a connection's last test. `tested_revision`: revision of the tested credential; the result does not apply to another one.
 * Decisions do not depend on these columns, so the fact version does not change.
 */
export async function connectionTests(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('connections').addColumn('tested_at', 'bigint').execute();
  await db.schema.alterTable('connections').addColumn('tested_revision', 'integer').execute();
  await db.schema.alterTable('connections').addColumn('tested_ok', 'integer').execute();
  await db.schema.alterTable('connections').addColumn('tested_status', 'integer').execute();
  await db.schema.alterTable('connections').addColumn('tested_detail', 'text').execute();
}
