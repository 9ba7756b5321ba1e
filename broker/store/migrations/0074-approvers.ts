import type { Kysely } from 'kysely';

/**
 * Approval by several people. `approvers`: how many have to approve a held call, by the rules that held it; null: one. `approved_before`: JSON,
 * the approvals that were given so far. Earlier releases approve with one person.
 */
export async function approvers(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('approvers', 'integer').execute();
  await db.schema.alterTable('approvals').addColumn('approved_before', 'text').execute();
}
