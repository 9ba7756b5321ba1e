import { type Kysely, sql } from 'kysely';

/** Static keys: bearers of an agent for one connection, for clients that cannot sign. Only their hashes are stored. */
export async function staticKeys(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('static_keys')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    // No foreign key: a key stays listed for a while after its connection was removed, which ends the key.
    .addColumn('connection_id', 'text', (c) => c.notNull())
    .addColumn('label', 'text', (c) => c.notNull())
    .addColumn('token_hash', 'text', (c) => c.notNull().unique())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('last_used_at', 'bigint')
    .addColumn('ended_at', 'bigint')
    .addColumn('ended_because', 'text', (c) => c.check(sql`ended_because in ('owner', 'agent', 'connection')`))
    .addPrimaryKeyConstraint('static_keys_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('static_keys_agent', ['organisation_id', 'agent_id'], 'agents', ['organisation_id', 'id'])
    .addCheckConstraint('static_keys_ended', sql`(ended_at is null) = (ended_because is null)`)
    .execute();
  await db.schema
    .createIndex('static_keys_of_agent')
    .on('static_keys')
    .columns(['organisation_id', 'agent_id'])
    .execute();
  await db.schema.createIndex('static_keys_over').on('static_keys').column('expires_at').execute();
}
