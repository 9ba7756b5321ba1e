import type { Db } from './store.ts';

/** A metadata value of the store, or undefined. */
export async function findMeta(db: Db, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('meta').select('value').where('name', '=', name).executeTakeFirst();
  return row?.value;
}

/** Writes a metadata value of the store. */
export async function putMeta(db: Db, name: string, value: string): Promise<void> {
  await db
    .insertInto('meta')
    .values({ name, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute();
}

/** Writes the value unless there is one, and returns the stored one: concurrent starts agree on it. */
export async function putMetaIfAbsent(db: Db, name: string, value: string): Promise<string> {
  await db
    .insertInto('meta')
    .values({ name, value })
    .onConflict((c) => c.column('name').doNothing())
    .execute();
  return (await findMeta(db, name)) as string;
}
