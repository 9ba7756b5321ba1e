/** Held raw requests, so that an identical request, to any replica, joins the approval of the first. */

import type { Db } from './store.ts';
import type { ApprovalTable, HeldJoinTable } from './tables/approvals.ts';

type Place = Pick<HeldJoinTable, 'organisation_id' | 'agent_id'>;
type Key = Place & Pick<HeldJoinTable, 'key' | 'separate'>;

/** A held call of such a request, with the state of its approval. */
export type FoundJoin = HeldJoinTable & Pick<ApprovalTable, 'status' | 'decided_at' | 'expires_at' | 'exec_state'>;

/** Links the approval `id` to this request, which stays open for `openMs`. False: another approval is linked already. */
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

/** Returns all held calls of the same request, oldest first. */
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

/** Extends the time until which a request waits for the approval. A later time of another request stays. */
export async function openHeldJoin(db: Db, of: Place & { approval_id: string }, openUntil: number): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .updateTable('held_joins')
    .set({ open_until: openUntil })
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .where('open_until', '<', openUntil)
    .execute();
}

/** Ends the wait of a request that would have lasted until `openUntil`. A longer wait of another request keeps it open. */
export async function closeHeldJoin(db: Db, of: Place & { approval_id: string }, openUntil: number): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .updateTable('held_joins')
    .set({ open_until: 0 })
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .where('open_until', '<=', openUntil)
    .execute();
}

/** Records when the client was first answered that there is no result; an earlier time stays. */
export async function recordHeldJoinAnswer(db: Db, of: Place & { approval_id: string }, at: number): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .updateTable('held_joins')
    .set({ told_at: at })
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .where('told_at', 'is', null)
    .execute();
}

/** Deletes the link: the next identical request is a new call. */
export async function endHeldJoin(db: Db, of: Place & { approval_id: string }): Promise<void> {
  const { organisation_id, agent_id, approval_id } = of;
  await db
    .deleteFrom('held_joins')
    .where((eb) => eb.and({ organisation_id, agent_id, approval_id }))
    .execute();
}

/** Deletes links that were created before `before`. */
export async function purgeHeldJoins(db: Db, before: number): Promise<void> {
  await db.deleteFrom('held_joins').where('created_at', '<', before).execute();
}
