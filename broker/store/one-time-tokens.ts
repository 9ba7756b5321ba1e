import type { Db } from './store.ts';
import type { OneTimeTokenTable } from './tables/registrations.ts';

/** Stores the hash of a new token. */
export async function putOneTimeToken(
  db: Db,
  token: Omit<OneTimeTokenTable, 'used_at' | 'rotates'> & Partial<Pick<OneTimeTokenTable, 'rotates'>>,
): Promise<void> {
  await db
    .insertInto('one_time_tokens')
    .values({ ...token, used_at: null })
    .execute();
}

/** The token with this hash, used or not; or undefined. */
export async function findOneTimeToken(
  db: Db,
  kind: OneTimeTokenTable['kind'],
  tokenHash: string,
): Promise<OneTimeTokenTable | undefined> {
  return await db
    .selectFrom('one_time_tokens')
    .selectAll()
    .where('token_hash', '=', tokenHash)
    .where('kind', '=', kind)
    .executeTakeFirst();
}

/** Consumes a token. Returns its row to exactly one caller; undefined to all others, or when it has expired. */
export async function useOneTimeToken(
  db: Db,
  kind: OneTimeTokenTable['kind'],
  tokenHash: string,
  now: number,
): Promise<OneTimeTokenTable | undefined> {
  return await db
    .updateTable('one_time_tokens')
    .set({ used_at: now })
    .where('token_hash', '=', tokenHash)
    .where('kind', '=', kind)
    .where('used_at', 'is', null)
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst();
}

/** Deletes tokens that expired before `before`. */
export async function purgeOneTimeTokens(db: Db, before: number): Promise<void> {
  await db.deleteFrom('one_time_tokens').where('expires_at', '<', before).execute();
}
