import { sql } from 'kysely';
import type { Store } from '../store.ts';

/** Returns the encoding of the PostgreSQL database unless it is UTF-8. Characters that an encoding lacks cannot be stored. */
export async function otherEncoding({ dialect, db }: Pick<Store, 'db' | 'dialect'>): Promise<string | undefined> {
  if (dialect !== 'postgres') return undefined;
  const { rows } = await sql<{ encoding: string }>`select current_setting('server_encoding') as encoding`.execute(db);
  return rows[0]?.encoding === 'UTF8' ? undefined : rows[0]?.encoding;
}

/** Throws a readable error for a new store in a database of another encoding, which is the default when PostgreSQL was set up without a locale. */
export async function refuseOtherEncoding(store: Pick<Store, 'db' | 'dialect'>): Promise<void> {
  const encoding = await otherEncoding(store);
  if (encoding !== undefined)
    throw new Error(
      `The database of DATABASE_URL stores texts as ${encoding}, and the broker needs one that stores UTF-8: ` +
        `create database … template template0 encoding 'UTF8' locale 'C.UTF-8'. Nothing was changed.`,
    );
}
