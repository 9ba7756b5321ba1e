import type { Kysely } from 'kysely';

/** What agents used of the limits of rules, by period. */
export async function limitCounts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('limit_counts')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    // Where the rule is defined, and its name.
    .addColumn('rule', 'text', (c) => c.notNull())
    // The agent, or its parent; empty: all agents together.
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('period_start', 'bigint', (c) => c.notNull())
    .addColumn('used', 'double precision', (c) => c.notNull())
    .addPrimaryKeyConstraint('limit_counts_key', ['organisation_id', 'rule', 'agent_id', 'period_start'])
    .execute();
  await db.schema.createIndex('limit_counts_period').on('limit_counts').column('period_start').execute();
}
