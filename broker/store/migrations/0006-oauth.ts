import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/** Connections that a person makes through OAuth: their tokens, who refreshes them now, and flows under way. */
export async function oauth(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const bytes = sql.raw(types.bytes);
  for (const [column, type] of [
    ['refresh_token', bytes],
    // JSON: whose account, and which server and client the tokens are of. Nothing secret.
    ['oauth', sql.raw('text')],
    // Which tokens these are: another one with each new pair.
    ['token_id', sql.raw('text')],
    // Which process refreshes them, and until when nobody else does.
    ['refresh_claim', sql.raw('text')],
    ['refresh_claim_until', sql.raw('bigint')],
  ] as const)
    await db.schema.alterTable('connections').addColumn(column, type).execute();

  // Client ids and client secrets that a manifest names and does not hold.
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
    // Of the browser that began it; null where a program did.
    .addColumn('session_id', 'text')
    .addColumn('flow', bytes, (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema.createIndex('oauth_flows_over').on('oauth_flows').column('expires_at').execute();
}
