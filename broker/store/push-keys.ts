/** The key pair of Web Push: one for the whole store. */

import type { Db } from './store.ts';
import type { PushKeyTable } from './tables/notices.ts';

/** It, or undefined where nobody asked for it yet. */
export async function findPushKey(db: Db): Promise<PushKeyTable | undefined> {
  return await db.selectFrom('push_keys').selectAll().executeTakeFirst();
}

/** Adds it. One of concurrent processes does; no effect for the others. */
export async function putFirstPushKey(db: Db, key: PushKeyTable): Promise<void> {
  await db
    .insertInto('push_keys')
    .values(key)
    .onConflict((c) => c.doNothing())
    .execute();
}
