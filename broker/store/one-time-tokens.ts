import type { OneTimeTokenTable } from './schema.ts';
import type { Db } from './store.ts';

/** Stores the hash of a token that was just minted. */
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

/** Uses a token up. Answers its row to exactly one caller, and undefined to everyone after, or when it is over. */
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

/** Forgets tokens that ended before `before`. */
export async function purgeOneTimeTokens(db: Db, before: number): Promise<void> {
  await db.deleteFrom('one_time_tokens').where('expires_at', '<', before).execute();
}
