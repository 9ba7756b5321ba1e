/** The authenticators of published keys (migration 0069). */
import type { Db, Store } from './store.ts';

/** A row of a table of published keys. `use`: what the key may sign. */
export type PublishedKey = { table: 'signing_keys' | 'log_keys'; id: string; use: string };

/** Stores the authenticator of a key that has none. */
export async function putAuthenticator(db: Db, { table, id }: PublishedKey, authenticator: Buffer): Promise<void> {
  if (table === 'signing_keys')
    await db
      .updateTable('signing_keys')
      .set({ authenticator })
      .where('kid', '=', id)
      .where('authenticator', 'is', null)
      .execute();
  else
    await db
      .updateTable('log_keys')
      .set({ authenticator })
      .where('id', '=', id)
      .where('authenticator', 'is', null)
      .execute();
}

/**
 * Adds the authenticators of all keys to a store in which no key has one, as a release before migration 0069 leaves it. Returns how many keys
 * got one; 0 for any other store. Of concurrently starting processes only one does this.
 */
export async function putFirstAuthenticators(
  { db }: Store,
  authenticatorOf: (key: PublishedKey) => Buffer,
): Promise<number> {
  if (!(await isWithout(db))) return 0;
  return await db.transaction().execute(async (tx) => {
    await lockSigningKeys(tx);
    if (!(await isWithout(tx))) return 0;
    const keys = await listPublished(tx);
    for (const key of keys) await putAuthenticator(tx, key, authenticatorOf(key));
    return keys.length;
  });
}

/** Serialises concurrent starts by a row lock, until this transaction ends. */
export async function lockSigningKeys(tx: Db): Promise<void> {
  await tx
    .insertInto('meta')
    .values({ name: 'signing_keys_lock', value: '' })
    .onConflict((c) => c.column('name').doUpdateSet({ value: '' }))
    .execute();
}

/** Whether no key has an authenticator. */
async function isWithout(db: Db): Promise<boolean> {
  const signing = db.selectFrom('signing_keys').select('kid as id').where('authenticator', 'is not', null);
  const log = db.selectFrom('log_keys').select('id').where('authenticator', 'is not', null);
  return (await signing.unionAll(log).limit(1).executeTakeFirst()) === undefined;
}

async function listPublished(db: Db): Promise<PublishedKey[]> {
  const signing = await db.selectFrom('signing_keys').select(['kid as id', 'use']).execute();
  const log = await db.selectFrom('log_keys').select('id').execute();
  return [
    ...signing.map((row): PublishedKey => ({ table: 'signing_keys', ...row })),
    ...log.map(({ id }): PublishedKey => ({ table: 'log_keys', id, use: 'log' })),
  ];
}
