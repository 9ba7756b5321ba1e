import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/** OAuth connections: their tokens, the claim on refreshing them, and OAuth flows in progress. */
export async function oauth(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const bytes = sql.raw(types.bytes);
  for (const [column, type] of [
    ['refresh_token', bytes],
    // JSON: the account, and the server and client that issued the tokens. Not secret.
    ['oauth', sql.raw('text')],
    // Identifies the current tokens; replaced with each new pair.
    ['token_id', sql.raw('text')],
    // The process that refreshes the tokens, and until when no other process may.
    ['refresh_claim', sql.raw('text')],
    ['refresh_claim_until', sql.raw('bigint')],
  ] as const)
    await db.schema.alterTable('connections').addColumn(column, type).execute();

  // Client ids and client secrets that a manifest refers to but does not contain.
  await db.schema
    .createTable('platform_secrets')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('value', bytes, (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('platform_secrets_key', ['organisation_id', 'id'])
    .addUniqueConstraint('platform_secrets_name', ['organisation_id', 'platform_id', 'name'])
    .addForeignKeyConstraint('platform_secrets_platform', ['organisation_id', 'platform_id'], 'platforms', [
      'organisation_id',
      'platform_id',
    ])
    .execute();

  await db.schema
    .createTable('oauth_flows')
    .addColumn('state_hash', 'text', (c) => c.primaryKey())
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('connection_id', 'text', (c) => c.notNull())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    // Session of the browser that began the flow; null when a program did.
    .addColumn('session_id', 'text')
    .addColumn('flow', bytes, (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema.createIndex('oauth_flows_over').on('oauth_flows').column('expires_at').execute();
}
