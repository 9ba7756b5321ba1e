import type { Kysely } from 'kysely';

/** Past calls of agents that rules with a look-back condition need. */
export async function callMarks(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('call_marks')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    // The agent, or its parent.
    .addColumn('agent_id', 'text', (c) => c.notNull())
    // Hash of the look-back condition that the call matches.
    .addColumn('kind', 'text', (c) => c.notNull())
    .addColumn('made_at', 'bigint', (c) => c.notNull())
    .addColumn('audit_id', 'text', (c) => c.notNull())
    .addPrimaryKeyConstraint('call_marks_key', ['organisation_id', 'agent_id', 'kind'])
    .execute();
  await db.schema.createIndex('call_marks_made').on('call_marks').column('made_at').execute();
}
