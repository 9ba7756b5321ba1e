import { lockSigningKeys } from './key-authenticators.ts';
import type { Db, Store } from './store.ts';
import type { SigningKeyTable } from './tables/installation.ts';

/** All keys of one use, oldest first; private parts sealed, and deleted for retired ones. */
export async function listSigningKeys(db: Db, use: SigningKeyTable['use']): Promise<SigningKeyTable[]> {
  return await db
    .selectFrom('signing_keys')
    .selectAll()
    .where('use', '=', use)
    .orderBy('activates_at')
    .orderBy('kid')
    .execute();
}

/** Adds a key. */
export async function putSigningKey(db: Db, key: SigningKeyTable): Promise<void> {
  await db.insertInto('signing_keys').values(key).execute();
}

/** Stores the first key of its use. False: a key that can sign exists. Succeeds for one of concurrently starting processes. */
export async function putFirstSigningKey({ db }: Store, key: SigningKeyTable): Promise<boolean> {
  return await db.transaction().execute(async (transaction) => {
    await lockSigningKeys(transaction);
    const able = await transaction
      .selectFrom('signing_keys')
      .select('kid')
      .where('use', '=', key.use)
      .where('private_key', 'is not', null)
      .executeTakeFirst();
    if (able) return false;
    await putSigningKey(transaction, key);
    return true;
  });
}

/** Retires replaced keys: the private part is deleted, the public part stays published. */
export async function retireSigningKeys(db: Db, kids: readonly string[], now: number): Promise<void> {
  if (kids.length === 0) return;
  await db
    .updateTable('signing_keys')
    .set({ retired_at: now, private_key: null })
    .where('kid', 'in', kids)
    .where('retired_at', 'is', null)
    .execute();
}
