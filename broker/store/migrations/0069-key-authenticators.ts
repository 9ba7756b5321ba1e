import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * What shows of a published key that the broker made it: sealed under the master key, which nobody has who can only write to the database. The public halves
 * of keys from before get theirs when the broker starts (key-authenticity.ts).
 */
export async function keyAuthenticators(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  for (const table of ['signing_keys', 'log_keys'])
    await db.schema.alterTable(table).addColumn('authenticator', sql.raw(types.bytes)).execute();
}
