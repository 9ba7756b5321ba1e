import type { Db } from './store.ts';

/** Says that the process `id` lives, now. */
export async function beat(db: Db, id: string, now: number): Promise<void> {
  await db
    .insertInto('instances')
    .values({ id, started_at: now, seen_at: now })
    .onConflict((c) => c.column('id').doUpdateSet({ seen_at: now }))
    .execute();
}

/** Takes the process off the list, when it stops in order or long after it was last seen. */
export async function forgetInstances(db: Db, which: { id: string } | { unseenSince: number }): Promise<void> {
  const query = db.deleteFrom('instances');
  await ('id' in which ? query.where('id', '=', which.id) : query.where('seen_at', '<', which.unseenSince)).execute();
}
