import type { Kysely } from 'kysely';

/**
 * Held raw requests: the same request sent again joins the approval of the first. `separate` distinguishes requests that are open
 * concurrently, by their Idempotency-Key. A row is deleted when the result was delivered to a client.
 */
export async function heldJoins(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('held_joins')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('key', 'text', (c) => c.notNull())
    .addColumn('separate', 'text', (c) => c.notNull())
    .addColumn('approval_id', 'text', (c) => c.notNull())
    .addColumn('open_until', 'bigint', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('held_joins_key', ['organisation_id', 'agent_id', 'key', 'separate'])
    .addForeignKeyConstraint('held_joins_agent', ['organisation_id', 'agent_id'], 'agents', ['organisation_id', 'id'])
    .execute();
  await db.schema.createIndex('held_joins_old').on('held_joins').column('created_at').execute();
}
