import type { SigningKeyTable } from './schema.ts';
import type { Db } from './store.ts';

/** All keys of one use, oldest first; private parts sealed, and gone from retired ones. */
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

/** Retires keys that a newer one has followed: the private part is destroyed, the public part stays published. */
export async function retireSigningKeys(db: Db, kids: readonly string[], now: number): Promise<void> {
  if (kids.length === 0) return;
  await db
    .updateTable('signing_keys')
    .set({ retired_at: now, private_key: null })
    .where('kid', 'in', kids)
    .where('retired_at', 'is', null)
    .execute();
}
