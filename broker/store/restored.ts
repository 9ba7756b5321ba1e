/** The state of a restored store until it is reviewed. */
import { StoreRestored } from '../policy/store-restored.ts';
import { findMeta, putMeta } from './meta.ts';
import type { Db } from './store.ts';
import { readStored } from './stored-json.ts';

/** Parses the column. */
export const readRestored = (text: string | null): StoreRestored | undefined =>
  text === null ? undefined : readStored(StoreRestored, text, 'restored store');

/** Returns the restore that awaits a review; undefined: no review is pending. */
export async function findRestored(db: Db, organisationId: string): Promise<StoreRestored | undefined> {
  const found = await db
    .selectFrom('organisations')
    .select('restored')
    .where('id', '=', organisationId)
    .executeTakeFirst();
  return readRestored(found?.restored ?? null);
}

/** Replaces the state in one guarded statement; `after` undefined: reviewed. False: another process has changed it. */
export async function putRestored(
  db: Db,
  organisationId: string,
  { before, after }: { before: StoreRestored; after: StoreRestored | undefined },
): Promise<boolean> {
  const changed = await db
    .updateTable('organisations')
    .set({ restored: after === undefined ? null : JSON.stringify(after) })
    .where('id', '=', organisationId)
    .where('restored', '=', JSON.stringify(before))
    .returning('id')
    .executeTakeFirst();
  return changed !== undefined;
}

const KEYS_RESTORED = 'keys_restored_at';

/** Returns the time of the last restore that lost the Idempotency-Keys used since its backup, in milliseconds since the epoch; or undefined. */
export async function findKeysRestored(db: Db): Promise<number | undefined> {
  const stored = await findMeta(db, KEYS_RESTORED);
  return stored === undefined ? undefined : Number(stored);
}

/** Stores that time. `now`: by the store's clock, in milliseconds since the epoch. */
export const putKeysRestored = (db: Db, now: number): Promise<void> => putMeta(db, KEYS_RESTORED, String(now));
