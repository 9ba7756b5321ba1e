/** Encryption keys for secrets that are sent to the broker. One is current; replaced ones can still decrypt for a while. */

import type { Db, Store } from './store.ts';
import type { SecretKeyTable } from './tables/registrations.ts';

/** The published key; undefined in a store that never had one. */
export async function findSecretKeyInForce(db: Db): Promise<SecretKeyTable | undefined> {
  return await db.selectFrom('secret_keys').selectAll().where('replaced_at', 'is', null).executeTakeFirst();
}

/** A key by its kid, current or not; or undefined. */
export async function findSecretKey(db: Db, kid: string): Promise<SecretKeyTable | undefined> {
  return await db.selectFrom('secret_keys').selectAll().where('kid', '=', kid).executeTakeFirst();
}

/** Stores the first key. Succeeds for one of concurrently starting processes; no effect for the others. */
export async function putFirstSecretKey(db: Db, key: SecretKeyTable): Promise<void> {
  await db
    .insertInto('secret_keys')
    .values(key)
    .onConflict((c) => c.doNothing())
    .execute();
}

/** Replaces the current key. Rejects when another process does so concurrently. */
export async function replaceSecretKey({ db }: Store, key: SecretKeyTable): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await transaction
      .updateTable('secret_keys')
      .set({ replaced_at: key.created_at })
      .where('replaced_at', 'is', null)
      .execute();
    await transaction.insertInto('secret_keys').values(key).execute();
  });
}

/** Deletes the private halves of keys that were replaced before `before`. */
export async function destroyReplacedSecretKeys(db: Db, before: number): Promise<void> {
  await db
    .updateTable('secret_keys')
    .set({ private_key: null })
    .where('replaced_at', '<', before)
    .where('private_key', 'is not', null)
    .execute();
}
