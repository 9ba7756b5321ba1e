import type { Kysely } from 'kysely';

/** Calls of agents that rules look back at. */
export async function callMarks(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('call_marks')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    // Of the agent, or of its parent.
    .addColumn('agent_id', 'text', (c) => c.notNull())
    // A hash of which calls the rules look back at.
    .addColumn('kind', 'text', (c) => c.notNull())
    .addColumn('made_at', 'bigint', (c) => c.notNull())
    .addColumn('audit_id', 'text', (c) => c.notNull())
    .addPrimaryKeyConstraint('call_marks_key', ['organisation_id', 'agent_id', 'kind'])
    .execute();
  await db.schema.createIndex('call_marks_made').on('call_marks').column('made_at').execute();
}
