import type { Kysely } from 'kysely';

/**
 * What agents have done, each action once, for rules that match the first time only. Written with the row of a call that was sent; kept when
 * audit rows are deleted.
 */
export async function agentDeeds(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('agent_deeds')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('hash', 'text', (c) => c.notNull())
    .addColumn('kind', 'text', (c) => c.notNull())
    .addColumn('changed', 'integer', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('agent_deeds_key', ['organisation_id', 'agent_id', 'hash'])
    .addForeignKeyConstraint('agent_deeds_agent', ['organisation_id', 'agent_id'], 'agents', ['organisation_id', 'id'])
    .execute();
}
