import { findMeta, putMeta, putMetaIfAbsent } from './meta.ts';
import type { Db } from './store.ts';

/**
 * The run that passkey challenges are bound to. `previous`: the run that had ended when this one began. Challenges issued in it since then
 * (milliseconds since the epoch) come from processes of this run that had not noticed its end yet.
 */
export type Run = { id: string; previous?: { id: string; since: number } };

/** A process without a heartbeat for longer than this is considered dead. */
export const LIVE_MS = 20_000;

/** A starting process: `startedAt` in milliseconds since the epoch, by the store's clock. */
type Starting = { id: string; startedAt: number; release?: string };

/** The members of a run, with the time of their last heartbeat. */
type Members = ReadonlyMap<string, number>;

/** The current run. */
export async function findRun(db: Db): Promise<Run> {
  const [id = '', previous, since] = ((await findMeta(db, 'run')) ?? '').split(' ');
  return previous === undefined ? { id } : { id, previous: { id: previous, since: Number(since) } };
}

/** Serialises starting processes: locks the run's row until the transaction ends. */
async function lockRun(tx: Db): Promise<void> {
  await tx
    .updateTable('meta')
    .set((eb) => ({ value: eb.ref('value') }))
    .where('name', '=', 'run')
    .execute();
}

/**
 * Registers a starting process. If it is the only one, it begins a run and becomes its member. Otherwise the listed members are returned,
 * and `settleRun` has to find out whether any of them is alive.
 */
export async function registerInstance(
  db: Db,
  { id, startedAt, release }: Starting,
): Promise<{ member: boolean; seen: Members }> {
  await putMetaIfAbsent(db, 'run', id);
  return await db.transaction().execute(async (tx) => {
    await lockRun(tx);
    const seen = await listMembers(tx, id);
    const member = (await listInstances(tx)).length === 0;
    if (member) await putMeta(tx, 'run', id);
    await tx
      .insertInto('instances')
      .values({ id, started_at: startedAt, seen_at: startedAt, member: member ? 1 : 0, release: release ?? null })
      .execute();
    return { member, seen };
  });
}

/**
 * Makes a process a member of the run if another member was alive after the process started: it sent a heartbeat, registered or left
 * (compared with `seen`, the list at the start). `begin`: if none was alive, the run has ended, and the process begins the next one. Only
 * members count, because processes that start together after a crash do not show that the run continues. Returns whether the process is a
 * member now.
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
    // Checked again under the lock: another starting process may have begun a run meanwhile, which this process then joins.
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

/** Whether any member was alive since `before`. Dead members are removed only by a member, and only after a longer time than a start waits. */
function hasLife(now: Members, before: Members): boolean {
  for (const [id, seenAt] of now) if (before.get(id) !== seenAt) return true;
  for (const id of before.keys()) if (!now.has(id)) return true;
  return false;
}

/** Stores a heartbeat of the process `id`. Always increases `seen_at`, even when the clock stands still or was set back. */
export async function heartbeat(db: Db, id: string, now: number, release?: string): Promise<void> {
  await db
    .insertInto('instances')
    .values({ id, started_at: now, seen_at: now, release: release ?? null })
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

/** Lists all registered processes, including dead ones that were not detected yet. */
export async function listInstances(db: Db): Promise<{ id: string; seen_at: number }[]> {
  return await db.selectFrom('instances').select(['id', 'seen_at']).execute();
}

/** Lists processes with a heartbeat within the last 20 s, the longest running first. Times in milliseconds; `now`: by the store's clock. */
export async function listLiveInstances(
  db: Db,
  now: number,
): Promise<{ id: string; startedAt: number; seenAt: number; release: string | null }[]> {
  const rows = await db
    .selectFrom('instances')
    .select(['id', 'started_at', 'seen_at', 'release'])
    .where('seen_at', '>', now - LIVE_MS)
    .orderBy('started_at')
    .orderBy('id')
    .execute();
  return rows.map(({ id, started_at, seen_at, release }) => ({
    id,
    startedAt: Number(started_at),
    seenAt: Number(seen_at),
    release,
  }));
}

/** Throws a readable error when a process sent a heartbeat within the last 20 s. `now`: by the store's clock, in milliseconds. */
export async function refuseLiveInstances(db: Db, now: number): Promise<void> {
  const newest = Math.max(0, ...(await listInstances(db)).map(({ seen_at }) => Number(seen_at)));
  if (newest > now - LIVE_MS)
    throw new Error(
      `A broker runs on this store: its last heartbeat was ${Math.max(0, Math.round((now - newest) / 1000))} s ago. Stop all of them; after one was killed, wait ${LIVE_MS / 1000} s.`,
    );
}

/** Unregisters a process, with `seenAt` only if it sent no heartbeat since; its intents are orphaned then. False: not registered, or it did. */
export async function forgetInstance(db: Db, id: string, seenAt?: number): Promise<boolean> {
  let query = db.deleteFrom('instances').where('id', '=', id);
  if (seenAt !== undefined) query = query.where('seen_at', '=', seenAt);
  return (await query.executeTakeFirst()).numDeletedRows > 0n;
}
