import { findMeta, putMeta, settleMeta } from './meta.ts';
import type { Db } from './store.ts';

/**
 * Takes the place of the process `id` on the list, and answers the run that it belongs to: that of those who are there, or
 * its own when there is nobody. Who starts at the same moment waits for its turn.
 */
export async function joinRun(db: Db, id: string, now: number): Promise<string> {
  await settleMeta(db, 'run', id);
  return await db.transaction().execute(async (tx) => {
    await tx
      .updateTable('meta')
      .set((eb) => ({ value: eb.ref('value') }))
      .where('name', '=', 'run')
      .execute();
    if ((await listInstances(tx)).length === 0) await putMeta(tx, 'run', id);
    await beat(tx, id, now);
    return (await findMeta(tx, 'run'))!;
  });
}

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
