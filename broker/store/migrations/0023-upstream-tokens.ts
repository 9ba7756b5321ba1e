import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Access tokens that the broker gets by itself, a connection having as many as there are things that they may be limited to. Each
 * is sealed; who gets the next one is claimed in its row.
 */
export async function upstreamTokens(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('upstream_tokens')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('connection_id', 'text', (c) => c.notNull())
    // SHA-256 of what the token is for: the installation, the repository and the permissions.
    .addColumn('purpose', 'text', (c) => c.notNull())
    // Another one for each token, because it is sealed for it.
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('token', sql.raw(types.bytes))
    .addColumn('refresh_at', 'bigint')
    // When the row may be forgotten: at the end of its token, or of its claim.
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('claim', 'text')
    .addColumn('claim_until', 'bigint')
    .addPrimaryKeyConstraint('upstream_tokens_key', ['organisation_id', 'connection_id', 'purpose'])
    .execute();
  await db.schema.createIndex('upstream_tokens_over').on('upstream_tokens').column('expires_at').execute();
  // For re-wrapping with a new master key, which goes through the rows in the order of their ids.
  await db.schema.createIndex('upstream_tokens_by_id').unique().on('upstream_tokens').column('id').execute();
}
