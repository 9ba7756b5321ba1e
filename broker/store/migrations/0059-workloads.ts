import type { Kysely } from 'kysely';

/** Workloads: issuers and subjects of the tokens that authenticate an agent without a key. */
export async function workloads(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('workloads')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    // Stored in audit rows, and as the credential that a call in flight depends on.
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('issuer', 'text', (c) => c.notNull())
    .addColumn('subject', 'text', (c) => c.notNull())
    .addColumn('jwks_uri', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('last_used_at', 'bigint')
    .addPrimaryKeyConstraint('workloads_key', ['organisation_id', 'agent_id'])
    .addForeignKeyConstraint('workloads_agent', ['organisation_id', 'agent_id'], 'agents', ['organisation_id', 'id'])
    .execute();
}
