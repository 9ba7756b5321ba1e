import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/** Tokens that are deleted here, and still have to be revoked at the server that issued them. */
export async function tokenRevocations(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('token_revocations')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('connection_id', 'text', (c) => c.notNull())
    // Null: the tokens were the connection's own.
    .addColumn('person_id', 'text')
    // Sealed: the tokens, and the broker's client at their server.
    .addColumn('request', sql.raw(types.bytes), (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('next_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('token_revocations_key', ['organisation_id', 'id'])
    .execute();
  await db.schema.createIndex('token_revocations_next').on('token_revocations').column('next_at').execute();
}
