/** Keys that secrets are sealed to before they come here. One is in force; those before it open for a while yet. */
import type { SecretKeyTable } from './schema.ts';
import type { Db, Store } from './store.ts';

/** The key that is published; undefined in a store that never had one. */
export async function findSecretKeyInForce(db: Db): Promise<SecretKeyTable | undefined> {
  return await db.selectFrom('secret_keys').selectAll().where('replaced_at', 'is', null).executeTakeFirst();
}

/** A key by its kid, in force or not; or undefined. */
export async function findSecretKey(db: Db, kid: string): Promise<SecretKeyTable | undefined> {
  return await db.selectFrom('secret_keys').selectAll().where('kid', '=', kid).executeTakeFirst();
}

/** Adds a first key. Of processes that start at once one does; for the others nothing changes. */
export async function putFirstSecretKey(db: Db, key: SecretKeyTable): Promise<void> {
  await db
    .insertInto('secret_keys')
    .values(key)
    .onConflict((c) => c.doNothing())
    .execute();
}

/** Puts a key in the place of the one in force. Rejects when another process does the same at this moment. */
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

/** Destroys the private halves of keys that were replaced before `before`. */
export async function destroyReplacedSecretKeys(db: Db, before: number): Promise<void> {
  await db
    .updateTable('secret_keys')
    .set({ private_key: null })
    .where('replaced_at', '<', before)
    .where('private_key', 'is not', null)
    .execute();
}
