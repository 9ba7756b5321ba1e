import type { Kysely } from 'kysely';

/** The audit row of a held call's last correction, which says by which rules it is held since. */
export async function correctionRows(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('correction_audit_id', 'text').execute();
}
