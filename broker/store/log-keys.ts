/** Keys of the receipt log (migration 0041). */

import type { Db } from './store.ts';
import type { LogKeyTable } from './tables/receipt-log.ts';

/** Lists all keys, newest first. */
export async function listLogKeys(db: Db): Promise<LogKeyTable[]> {
  return await db.selectFrom('log_keys').selectAll().orderBy('created_at', 'desc').orderBy('id').execute();
}

/** Adds a key. */
export async function putLogKey(db: Db, key: LogKeyTable): Promise<void> {
  await db.insertInto('log_keys').values(key).execute();
}

/** Destroys the private halves of all keys except `but`; the public halves are kept. */
export async function retireLogKeys(db: Db, but: string | undefined, now: number): Promise<void> {
  await db
    .updateTable('log_keys')
    .set({ private_key: null, retired_at: now })
    .where('retired_at', 'is', null)
    .$if(but !== undefined, (update) => update.where('id', '!=', but as string))
    .execute();
}
