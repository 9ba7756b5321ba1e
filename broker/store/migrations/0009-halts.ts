import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Secrets that are delivered encrypted, with an owner's authorisation; former keys of agents; suspension of agents that are refused too
 * often.
 */
export async function halts(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const bytes = sql.raw(types.bytes);
  await db.schema
    .createTable('secret_keys')
    .addColumn('kid', 'text', (c) => c.primaryKey())
    .addColumn('public_jwk', 'text', (c) => c.notNull())
    .addColumn('private_key', bytes)
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    // Since when another key is published instead; this key still decrypts earlier messages for a while.
    .addColumn('replaced_at', 'bigint')
    .execute();
  // Only one key is in force: of processes that create one concurrently, one succeeds.
  await sql`create unique index secret_keys_in_force on secret_keys (coalesce(replaced_at, 0)) where replaced_at is null`.execute(
    db,
  );

  await db.schema
    .createTable('secret_authorizations')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('token_hash', 'text', (c) => c.notNull().unique())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('label', 'text', (c) => c.notNull())
    .addColumn('scopes', 'text')
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('used_at', 'bigint')
    .addColumn('connection_id', 'text')
    .addPrimaryKeyConstraint('secret_authorizations_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('secret_authorizations_owner', ['organisation_id', 'owner_id'], 'owners', [
      'organisation_id',
      'id',
    ])
    .addCheckConstraint('secret_authorizations_used', sql`(used_at is null) = (connection_id is null)`)
    .execute();
  await db.schema.createIndex('secret_authorizations_over').on('secret_authorizations').column('expires_at').execute();

  await db.schema
    .createTable('former_keys')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('fingerprint', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('replaced_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('former_keys_key', ['organisation_id', 'fingerprint'])
    .execute();

  await db.schema.alterTable('organisations').addColumn('auto_suspend', 'text').execute();
  await db.schema
    .createTable('refusal_counts')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('refusals', 'integer', (c) => c.notNull())
    .addColumn('window_start', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('refusal_counts_key', ['organisation_id', 'agent_id'])
    .execute();
}
