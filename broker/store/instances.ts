import type { Db } from './store.ts';

/** Says that the process `id` lives. Every beat moves `seen_at` on, also when the clock stands still or was set back. */
export async function beat(db: Db, id: string, now: number): Promise<void> {
  await db
    .insertInto('instances')
    .values({ id, started_at: now, seen_at: now })
    .onConflict((c) =>
      c.column('id').doUpdateSet((eb) => ({
        seen_at: eb
          .case()
          .when('instances.seen_at', '<', now)
          .then(now)
          .else(eb('instances.seen_at', '+', 1))
          .end(),
      })),
    )
    .execute();
}

/** All processes on the list, dead ones that nobody noticed yet included. */
export async function listInstances(db: Db): Promise<{ id: string; seen_at: number }[]> {
  return await db.selectFrom('instances').select(['id', 'seen_at']).execute();
}

/** Takes a process off the list; with `seenAt` only if it did not beat since. What it intended is then orphaned. */
export async function forgetInstance(db: Db, id: string, seenAt?: number): Promise<void> {
  let query = db.deleteFrom('instances').where('id', '=', id);
  if (seenAt !== undefined) query = query.where('seen_at', '=', seenAt);
  await query.execute();
}
