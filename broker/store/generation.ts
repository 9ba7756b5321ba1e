/** The generation of a store, which detects an older copy of it: the store's id, and a number that only grows. */
import { sql } from 'kysely';
import { uuidv4 } from '../crypto/ids.ts';
import { findMeta, putMeta, putMetaIfAbsent } from './meta.ts';
import type { Db } from './store.ts';

export type Generation = { storeId: string; number: number };

const STORE_ID = 'store_id';
const GENERATION = 'generation';
const BACKUP = 'backup';

/** Returns the generation; undefined: the store has none yet. */
export async function findGeneration(db: Db): Promise<Generation | undefined> {
  const [storeId, number] = [await findMeta(db, STORE_ID), await findMeta(db, GENERATION)];
  return storeId === undefined ? undefined : { storeId, number: Number(number ?? 0) };
}

/** Advances the store to its next generation and returns it. */
export async function advanceGeneration(db: Db): Promise<Generation> {
  const storeId = await putMetaIfAbsent(db, STORE_ID, uuidv4());
  await putMetaIfAbsent(db, GENERATION, '0');
  const { value } = await db
    .updateTable('meta')
    .set({ value: sql<string>`cast(cast(value as bigint) + 1 as text)` })
    .where('name', '=', GENERATION)
    .returning('value')
    .executeTakeFirstOrThrow();
  return { storeId, number: Number(value) };
}

/** For a restored store: sets a generation beyond any that a process has seen, and clears the backup mark. */
export async function settleGeneration(db: Db, number: number): Promise<void> {
  await putMetaIfAbsent(db, STORE_ID, uuidv4());
  await putMeta(db, GENERATION, String(number));
  await db.deleteFrom('meta').where('name', '=', BACKUP).execute();
}

/** Returns when the backup was made that this file is; undefined: it is not a backup. */
export async function findBackupMark(db: Db): Promise<string | undefined> {
  return await findMeta(db, BACKUP);
}

/**
 * On PostgreSQL, a table that exists from before a dump is loaded until pending items were ended: the dump is complete from its commit on,
 * and a broker on another machine could start on it without knowing of the restore.
 */
export const RESTORE_MARK = 'restore_under_way';

/** Marks an empty database as being restored. */
export async function markRestore(db: Db): Promise<void> {
  await sql`create table if not exists ${sql.table(RESTORE_MARK)} ()`.execute(db);
}

export async function hasRestoreMark(db: Db): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select to_regclass(${RESTORE_MARK}) is not null as found`.execute(db);
  return rows[0]?.found === true;
}

/** Removes the mark, in the transaction that ends pending items. */
export async function unmarkRestore(db: Db): Promise<void> {
  await sql`drop table if exists ${sql.table(RESTORE_MARK)}`.execute(db);
}
