import type { Db } from './store.ts';

/** A fact about the store itself, or undefined. */
export async function findMeta(db: Db, name: string): Promise<string | undefined> {
  const row = await db.selectFrom('meta').select('value').where('name', '=', name).executeTakeFirst();
  return row?.value;
}

/** Writes a fact about the store itself. */
export async function putMeta(db: Db, name: string, value: string): Promise<void> {
  await db
    .insertInto('meta')
    .values({ name, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute();
}

/** Writes the fact unless there is one, and answers the one that then stands: two processes that start at once agree. */
export async function settleMeta(db: Db, name: string, value: string): Promise<string> {
  await db
    .insertInto('meta')
    .values({ name, value })
    .onConflict((c) => c.column('name').doNothing())
    .execute();
  return (await findMeta(db, name)) as string;
}
