import { type Kysely, sql } from 'kysely';

/** Records of the authorization server, and owners' consents for MCP clients. */
export async function mcpClients(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('oauth_records')
    .addColumn('kind', 'text', (c) => c.notNull())
    // Redeemable values are stored as SHA-256 only.
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('authorisation_id', 'text')
    .addColumn('payload', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    // Null: does not expire by time.
    .addColumn('expires_at', 'bigint')
    .addColumn('used_at', 'bigint')
    .addPrimaryKeyConstraint('oauth_records_key', ['kind', 'id'])
    .execute();
  await db.schema
    .createIndex('oauth_records_of_authorisation')
    .on('oauth_records')
    .columns(['authorisation_id', 'kind'])
    .execute();
  // For background jobs, and for evicting the oldest clients when very many register.
  await db.schema.createIndex('oauth_records_over').on('oauth_records').columns(['kind', 'expires_at']).execute();

  await db.schema
    .createTable('mcp_authorisations')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('client_id', 'text', (c) => c.notNull())
    .addColumn('client_name', 'text', (c) => c.notNull())
    .addColumn('redirect_host', 'text', (c) => c.notNull())
    .addColumn('scope', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('ended_at', 'bigint')
    .addColumn('ended_because', 'text', (c) => c.check(sql`ended_because in ('owner', 'client', 'reuse')`))
    .addPrimaryKeyConstraint('mcp_authorisations_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('mcp_authorisations_agent', ['organisation_id', 'agent_id'], 'agents', [
      'organisation_id',
      'id',
    ])
    .addForeignKeyConstraint('mcp_authorisations_owner', ['organisation_id', 'owner_id'], 'owners', [
      'organisation_id',
      'id',
    ])
    .addCheckConstraint('mcp_authorisations_ended', sql`(ended_at is null) = (ended_because is null)`)
    .execute();
  await db.schema.createIndex('mcp_authorisations_of_client').on('mcp_authorisations').columns(['client_id']).execute();
  await db.schema.createIndex('mcp_authorisations_over').on('mcp_authorisations').column('expires_at').execute();

  // Calls of MCP clients whose response was not delivered yet: an identical call, to any replica, is treated as a retry.
  await db.schema
    .createTable('mcp_repeats')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('hash', 'text', (c) => c.notNull())
    .addColumn('key', 'text', (c) => c.notNull())
    .addColumn('reason', 'text')
    .addColumn('approval_id', 'text')
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('mcp_repeats_key', ['organisation_id', 'agent_id', 'hash'])
    .addForeignKeyConstraint('mcp_repeats_agent', ['organisation_id', 'agent_id'], 'agents', ['organisation_id', 'id'])
    .execute();
  await db.schema.createIndex('mcp_repeats_over').on('mcp_repeats').column('expires_at').execute();
}
