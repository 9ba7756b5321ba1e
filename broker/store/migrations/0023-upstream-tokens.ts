import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Access tokens that the broker requests by itself; a connection has one per installation, repository and permissions. Each is sealed; the
 * row also holds the claim of the process that requests the next one.
 */
export async function upstreamTokens(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('upstream_tokens')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('connection_id', 'text', (c) => c.notNull())
    // SHA-256 of the token's purpose: the installation, the repository and the permissions.
    .addColumn('purpose', 'text', (c) => c.notNull())
    // New for each token, because the token is sealed for this id.
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('token', sql.raw(types.bytes))
    .addColumn('refresh_at', 'bigint')
    // When the row may be deleted: when its token or its claim expires.
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('claim', 'text')
    .addColumn('claim_until', 'bigint')
    .addPrimaryKeyConstraint('upstream_tokens_key', ['organisation_id', 'connection_id', 'purpose'])
    .execute();
  await db.schema.createIndex('upstream_tokens_over').on('upstream_tokens').column('expires_at').execute();
  // For re-encrypting with a new master key, which reads the rows in the order of their ids.
  await db.schema.createIndex('upstream_tokens_by_id').unique().on('upstream_tokens').column('id').execute();
}
