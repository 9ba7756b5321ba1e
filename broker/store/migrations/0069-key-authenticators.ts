import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Proof that the broker created a published key: sealed under the master key, which a person who can only write to the database does not have.
 * Existing keys get theirs when the broker starts (key-authenticity.ts).
 */
export async function keyAuthenticators(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  for (const table of ['signing_keys', 'log_keys'])
    await db.schema.alterTable(table).addColumn('authenticator', sql.raw(types.bytes)).execute();
}
