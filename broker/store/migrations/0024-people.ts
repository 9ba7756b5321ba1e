import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * People for whom agents call: their identity only as a keyed hash, their tokens, and pending consents. The issuers whose assertions an
 * organisation trusts are among its settings.
 */
export async function people(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema.alterTable('organisations').addColumn('caller_issuers', 'text').execute();

  await db.schema
    .createTable('person_keys')
    .addColumn('organisation_id', 'text', (c) => c.primaryKey())
    .addColumn('id', 'text', (c) => c.notNull().unique())
    // HMAC key of the organisation, sealed. Never replaced: with another key no stored person would be recognised.
    .addColumn('hash_key', sql.raw(types.bytes), (c) => c.notNull())
    .execute();

  await db.schema
    .createTable('persons')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('hash', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('persons_key', ['organisation_id', 'id'])
    .addUniqueConstraint('persons_by_hash', ['organisation_id', 'hash'])
    .execute();

  await db.schema
    .createTable('person_tokens')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('connection_id', 'text', (c) => c.notNull())
    .addColumn('person_id', 'text', (c) => c.notNull())
    // Progress: obtained, unconfirmed, kept. Only kept tokens are used.
    .addColumn('standing', 'text', (c) => c.notNull())
    .addColumn('consent_id', 'text', (c) => c.notNull())
    .addColumn('status', 'text', (c) => c.notNull())
    .addColumn('credential', sql.raw(types.bytes))
    .addColumn('refresh_token', sql.raw(types.bytes))
    .addColumn('token_id', 'text')
    .addColumn('oauth', 'text')
    .addColumn('upstream_scopes', 'text')
    .addColumn('refresh_claim', 'text')
    .addColumn('refresh_claim_until', 'bigint')
    // Who identified the person, for display to owners: a source or an issuer, and the agent that asked.
    .addColumn('named_by', 'text', (c) => c.notNull())
    .addColumn('verified', 'integer', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('person_tokens_key', ['organisation_id', 'id'])
    .execute();
  await sql`create unique index person_tokens_kept on person_tokens (organisation_id, connection_id, person_id)
    where standing = 'kept'`.execute(db);

  await db.schema
    .createTable('person_consents')
    .addColumn('token_hash', 'text', (c) => c.primaryKey())
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('family_id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('connection_id', 'text', (c) => c.notNull())
    .addColumn('person_id', 'text', (c) => c.notNull())
    .addColumn('named_by', 'text', (c) => c.notNull())
    .addColumn('verified', 'integer', (c) => c.notNull())
    .addColumn('status', 'text', (c) => c.notNull())
    // The browser that goes through the consent, and the OAuth flow that it was sent to: sealed, found by the hash of its state.
    .addColumn('browser_hash', 'text')
    .addColumn('state_hash', 'text', (c) => c.unique())
    .addColumn('flow', sql.raw(types.bytes))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema
    .createIndex('person_consents_open')
    .on('person_consents')
    .columns(['organisation_id', 'family_id', 'expires_at'])
    .execute();
  await db.schema.createIndex('person_consents_over').on('person_consents').column('expires_at').execute();
}
