/**
 * Children of agents. An agent's row counts its live ones: creating and ending a child updates that row first, which serialises
 * concurrent changes and orders locks so that there is no deadlock.
 */

import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';

type Ref = { organisationId: string; id: string };

/** Builds a query for the uuids of an agent and its live children. */
export const livingFamily = (db: Db, organisationId: string, familyRootUuid: string) =>
  db
    .selectFrom('agents')
    .select('id')
    .where('organisation_id', '=', organisationId)
    .where('id', '=', familyRootUuid)
    .unionAll(
      db
        .selectFrom('agents')
        .select('id')
        .where('parent_id', '=', familyRootUuid)
        .where('status', 'in', ['active', 'suspended']),
    );

/** Reserves one of an active agent's child slots. False: all are taken, or the agent is not active. */
export async function reserveChildSlot(db: Db, parent: Ref, most: number, now: number): Promise<boolean> {
  const taken = await db
    .updateTable('agents')
    .set((eb) => ({ live_children: eb('live_children', '+', 1) }))
    .where('organisation_id', '=', parent.organisationId)
    .where('id', '=', parent.id)
    .where('status', '=', 'active')
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .where('live_children', '<', most)
    .returning('id')
    .executeTakeFirst();
  return taken !== undefined;
}

/** Releases a child slot. To be called in the transaction that ends the child, before the child's row is updated. */
export async function freeChildSlot(db: Db, parent: Ref): Promise<void> {
  await db
    .updateTable('agents')
    .set((eb) => ({ live_children: eb('live_children', '-', 1) }))
    .where('organisation_id', '=', parent.organisationId)
    .where('id', '=', parent.id)
    .where('live_children', '>', 0)
    .execute();
}

/** Releases all child slots. To be called first in the transaction that ends all children. */
export async function freeChildSlots(db: Db, parent: Ref): Promise<void> {
  await db
    .updateTable('agents')
    .set({ live_children: 0 })
    .where('organisation_id', '=', parent.organisationId)
    .where('id', '=', parent.id)
    .execute();
}

/** Lists the uuids of an agent's live children, including those that have expired but are not marked so yet. */
export async function listLivingChildren(db: Db, parent: Ref): Promise<string[]> {
  const found = await db
    .selectFrom('agents')
    .select('id')
    .where('organisation_id', '=', parent.organisationId)
    .where('parent_id', '=', parent.id)
    .where('status', 'in', ['active', 'suspended'])
    .execute();
  return found.map(({ id }) => id);
}

/** Lists expired children that are not marked so yet, earliest expiry first. */
export async function listOverdueChildren(
  db: Db,
  parent: Ref,
  page: { now: number; limit: number },
): Promise<AgentTable[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', parent.organisationId)
    .where('parent_id', '=', parent.id)
    .where('status', 'in', ['active', 'suspended'])
    .where('expires_at', '<=', page.now)
    .orderBy('expires_at')
    .orderBy('id')
    .limit(page.limit)
    .execute();
}

/** Marks a child as expired, as of its expiry. False: already done. */
export async function expireChild(db: Db, child: Ref, now: number): Promise<boolean> {
  const expired = await db
    .updateTable('agents')
    .set((eb) => ({
      status: 'revoked' as const,
      status_since: eb.ref('expires_at'),
      // No person or breaker stopped it.
      status_cause: 'unknown' as const,
      status_detail: null,
    }))
    .where('organisation_id', '=', child.organisationId)
    .where('id', '=', child.id)
    .where('status', 'in', ['active', 'suspended'])
    .where('expires_at', '<=', now)
    .returning('id')
    .executeTakeFirst();
  return expired !== undefined;
}

/** Whether all of these agents are live. While the family root's row is locked, this cannot change until the transaction ends. */
export async function areLiving(db: Db, organisationId: string, ids: readonly string[], now: number): Promise<boolean> {
  const living = await db
    .selectFrom('agents')
    .select('id')
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', ids)
    .where('status', 'in', ['active', 'suspended'])
    .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
    .execute();
  return living.length === ids.length;
}
