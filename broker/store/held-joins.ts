/** Held raw requests, to be found by whoever sends the same request again, on any replica. */

import type { Db } from './store.ts';
import type { ApprovalTable, HeldJoinTable } from './tables/approvals.ts';

type Place = Pick<HeldJoinTable, 'organisation_id' | 'agent_id'>;
type Key = Place & Pick<HeldJoinTable, 'key' | 'separate'>;

/** What is held by such a request, the oldest first. */
export type FoundJoin = HeldJoinTable & Pick<ApprovalTable, 'status' | 'decided_at' | 'expires_at' | 'exec_state'>;

/** Stores that the approval `id` is of this request, which stays open for `openMs`; false when another one is of it. */
export async function putHeldJoin(
  tx: Db,
  { id, now, openMs, ...of }: Key & { id: string; now: number; openMs: number },
): Promise<boolean> {
  const { organisation_id, agent_id, key, separate } = of;
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('held_joins')
    .values({
      ...{ organisation_id, agent_id, key, separate, approval_id: id },
      ...{ open_until: now + openMs, told_at: null, created_at: now },
    })
    .onConflict((c) => c.doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** All that are held by the same request. */
export async function findHeldJoins(
  db: Db,
  { organisation_id, agent_id, key }: Place & { key: string },
): Promise<FoundJoin[]> {
  return await db
    .selectFrom('held_joins as j')
    .innerJoin('approvals as a', (join) =>
      join.onRef('a.organisation_id', '=', 'j.organisation_id').onRef('a.id', '=', 'j.approval_id'),
    )
    .selectAll('j')
    .select(['a.status', 'a.decided_at', 'a.expires_at', 'a.exec_state'])
    .where('j.organisation_id', '=', organisation_id)
    .where('j.agent_id', '=', agent_id)
    .where('j.key', '=', key)
    .orderBy('j.created_at')
    .execute();
}

/** That a request waits for it until then, at the most; others may wait longer. */
export async function openHeldJoin(db: Db, of: Place & { approval_id: string }, openUntil: number): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .updateTable('held_joins')
    .set({ open_until: openUntil })
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .where('open_until', '<', openUntil)
    .execute();
}

/** The request that would have waited until then waits no more; where another one waits longer, it stays open. */
export async function closeHeldJoin(db: Db, of: Place & { approval_id: string }, openUntil: number): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .updateTable('held_joins')
    .set({ open_until: 0 })
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .where('open_until', '<=', openUntil)
    .execute();
}

/** That its client was told at that moment that there is no answer; one of before counts. */
export async function tellHeldJoin(db: Db, of: Place & { approval_id: string }, at: number): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .updateTable('held_joins')
    .set({ told_at: at })
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .where('told_at', 'is', null)
    .execute();
}

/** Forgets it: the next equal request is another call. */
export async function endHeldJoin(db: Db, of: Place & { approval_id: string }): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .deleteFrom('held_joins')
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .execute();
}

/** Forgets those of before. */
export async function purgeHeldJoins(db: Db, before: number): Promise<void> {
  await db.deleteFrom('held_joins').where('created_at', '<', before).execute();
}
