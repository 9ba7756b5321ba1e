import type { Kysely } from 'kysely';

/** How many bytes of responses are stored for `Idempotency-Key`s of an agent and its children, by the hour in which they expire. */
export async function storedResponses(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('stored_responses')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('hour', 'bigint', (c) => c.notNull())
    .addColumn('bytes', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('stored_responses_key', ['organisation_id', 'agent_id', 'hour'])
    .execute();
}
