import { findMeta, putMeta, settleMeta } from './meta.ts';
import type { Db } from './store.ts';

/**
 * What passkey challenges are keyed with. `previous`: the run that had ended when this one began; what was issued in it
 * since then (milliseconds since the epoch) was issued by processes of this one that could not know that yet.
 */
export type Run = { id: string; previous?: { id: string; since: number } };

/** Processes that start: `startedAt` in milliseconds since the epoch, by the store's clock. */
type Starting = { id: string; startedAt: number };

/** The members of a run, each with its last heartbeat. */
type Members = ReadonlyMap<string, number>;

/** The run of the processes on this store. */
export async function findRun(db: Db): Promise<Run> {
  const [id = '', previous, since] = ((await findMeta(db, 'run')) ?? '').split(' ');
  return previous === undefined ? { id } : { id, previous: { id: previous, since: Number(since) } };
}

/** Makes every other start wait for this transaction. */
async function lockRun(tx: Db): Promise<void> {
  await tx
    .updateTable('meta')
    .set((eb) => ({ value: eb.ref('value') }))
    .where('name', '=', 'run')
    .execute();
}

/**
 * Lists a process that starts. With nobody on the list it begins a run and is a member of it. Otherwise `settleRun` has to
 * find out whether the members that are listed, and answered here, are alive.
 */
export async function registerInstance(
  db: Db,
  { id, startedAt }: Starting,
): Promise<{ member: boolean; seen: Members }> {
  await settleMeta(db, 'run', id);
  return await db.transaction().execute(async (tx) => {
    await lockRun(tx);
    const seen = await listMembers(tx, id);
    const member = (await listInstances(tx)).length === 0;
    if (member) await putMeta(tx, 'run', id);
    await tx
      .insertInto('instances')
      .values({ id, started_at: startedAt, seen_at: startedAt, member: member ? 1 : 0 })
      .execute();
    return { member, seen };
  });
}

/**
 * Makes a process that started a member of the run, if a member was alive after the start: it sent a heartbeat, came onto
 * the list or left it (`seen`: the list at the start). `begin`: if none was, that run has ended, and the process begins the
 * next one. Only members count, because processes that start together after a crash are no evidence for each other.
 * Answers whether it is a member now.
 */
export async function settleRun(
  db: Db,
  { id, startedAt }: Starting,
  seen: Members,
  { begin }: { begin: boolean },
): Promise<boolean> {
  if (!begin && !hasLife(await listMembers(db, id), seen)) return false;
  await db.transaction().execute(async (tx) => {
    await lockRun(tx);
    // Once more: another process that starts may have begun a run meanwhile, and then this one is of that.
    if (!hasLife(await listMembers(tx, id), seen)) {
      const { id: ended } = await findRun(tx);
      await putMeta(tx, 'run', `${id} ${ended} ${startedAt}`);
    }
    await tx.updateTable('instances').set({ member: 1 }).where('id', '=', id).execute();
  });
  return true;
}

async function listMembers(db: Db, except: string): Promise<Members> {
  const rows = await db
    .selectFrom('instances')
    .select(['id', 'seen_at'])
    .where('member', '=', 1)
    .where('id', '<>', except)
    .execute();
  return new Map(rows.map(({ id, seen_at }) => [id, seen_at]));
}

/** Dead ones are taken off the list too, but by a member, after longer than a start waits. */
function hasLife(now: Members, before: Members): boolean {
  for (const [id, seenAt] of now) if (before.get(id) !== seenAt) return true;
  for (const id of before.keys()) if (!now.has(id)) return true;
  return false;
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
