/** The key pair of Web Push: one for the whole store. */

import type { Db } from './store.ts';
import type { PushKeyTable } from './tables/notices.ts';

/** Returns the key pair; undefined: none was needed yet. */
export async function findPushKey(db: Db): Promise<PushKeyTable | undefined> {
  return await db.selectFrom('push_keys').selectAll().executeTakeFirst();
}

/** Stores the key pair. Succeeds for one of concurrent processes; no effect for the others. */
export async function putFirstPushKey(db: Db, key: PushKeyTable): Promise<void> {
  await db
    .insertInto('push_keys')
    .values(key)
    .onConflict((c) => c.doNothing())
    .execute();
}
