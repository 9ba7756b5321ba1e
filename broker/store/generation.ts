/** How far a store is, to tell an older copy of it: a number that only grows, and the store that it is of. */
import { sql } from 'kysely';
import { uuidv4 } from '../crypto/ids.ts';
import { findMeta, putMeta, putMetaIfAbsent } from './meta.ts';
import type { Db } from './store.ts';

export type Generation = { storeId: string; number: number };

const STORE_ID = 'store_id';
const GENERATION = 'generation';
const BACKUP = 'backup';

/** Undefined: the store has none yet. */
export async function findGeneration(db: Db): Promise<Generation | undefined> {
  const [storeId, number] = [await findMeta(db, STORE_ID), await findMeta(db, GENERATION)];
  return storeId === undefined ? undefined : { storeId, number: Number(number ?? 0) };
}

/** The next generation, in the store. */
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

/** Of a store that was restored: beyond what any process has seen of it, and no backup any more. */
export async function settleGeneration(db: Db, number: number): Promise<void> {
  await putMetaIfAbsent(db, STORE_ID, uuidv4());
  await putMeta(db, GENERATION, String(number));
  await db.deleteFrom('meta').where('name', '=', BACKUP).execute();
}

/** When the backup was made that this file is; undefined: it is none. */
export async function findBackupMark(db: Db): Promise<string | undefined> {
  return await findMeta(db, BACKUP);
}

/**
 * On PostgreSQL, a table that is there from before a dump is loaded until what waited in it was ended: the dump itself is whole from its
 * commit on, and a broker on another machine remembers nothing of it.
 */
export const RESTORE_MARK = 'restore_under_way';

/** Marks an empty database. */
export async function markRestore(db: Db): Promise<void> {
  await sql`create table if not exists ${sql.table(RESTORE_MARK)} ()`.execute(db);
}

export async function hasRestoreMark(db: Db): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`select to_regclass(${RESTORE_MARK}) is not null as found`.execute(db);
  return rows[0]?.found === true;
}

/** Takes the mark away, in the transaction that ends what waited. */
export async function unmarkRestore(db: Db): Promise<void> {
  await sql`drop table if exists ${sql.table(RESTORE_MARK)}`.execute(db);
}
