import type { Kysely } from 'kysely';

/** The audit row of a held call's last correction, which has the rules that hold the call since. */
export async function correctionRows(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('correction_audit_id', 'text').execute();
}
