/** Whether a restored store was reviewed. */
import { StoreRestored } from '../policy/store-restored.ts';
import { findMeta, putMeta } from './meta.ts';
import type { Db } from './store.ts';
import { readStored } from './stored-json.ts';

/** What the column says. */
export const readRestored = (text: string | null): StoreRestored | undefined =>
  text === null ? undefined : readStored(StoreRestored, text, 'restored store');

/** Undefined: nothing waits for a review. */
export async function findRestored(db: Db, organisationId: string): Promise<StoreRestored | undefined> {
  const found = await db
    .selectFrom('organisations')
    .select('restored')
    .where('id', '=', organisationId)
    .executeTakeFirst();
  return readRestored(found?.restored ?? null);
}

/** Replaces what is there, in one guarded statement; undefined: it was reviewed. False: another process was first. */
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

/** When the store was restored last, in milliseconds since the epoch, without knowing the Idempotency-Keys that were used since the backup; or undefined. */
export async function findKeysRestored(db: Db): Promise<number | undefined> {
  const stored = await findMeta(db, KEYS_RESTORED);
  return stored === undefined ? undefined : Number(stored);
}

/** `now`: by the store's clock, in milliseconds since the epoch. */
export const putKeysRestored = (db: Db, now: number): Promise<void> => putMeta(db, KEYS_RESTORED, String(now));
