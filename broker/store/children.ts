/**
 * Children of agents. An agent's row counts its live ones: whoever makes or ends a child changes that row first, so that of
 * two who are at it at the same time one waits for the other, and nobody waits in a ring.
 */
import type { AgentTable } from './schema.ts';
import type { Db } from './store.ts';

type Ref = { organisationId: string; id: string };

/** The uuids of an agent and of its children that are not over, as a query. */
export const livingFamily = (db: Db, organisationId: string, eldestUuid: string) =>
  db
    .selectFrom('agents')
    .select('id')
    .where('organisation_id', '=', organisationId)
    .where('id', '=', eldestUuid)
    .unionAll(
      db
        .selectFrom('agents')
        .select('id')
        .where('parent_id', '=', eldestUuid)
        .where('status', 'in', ['active', 'suspended']),
    );

/** Takes one of an active agent's places for children. False: all are taken, or it is not active. */
export async function takeChildPlace(db: Db, parent: Ref, most: number, now: number): Promise<boolean> {
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

/** Gives a place back. To be called in the transaction that ends the child, before it does. */
export async function freeChildPlace(db: Db, parent: Ref): Promise<void> {
  await db
    .updateTable('agents')
    .set((eb) => ({ live_children: eb('live_children', '-', 1) }))
    .where('organisation_id', '=', parent.organisationId)
    .where('id', '=', parent.id)
    .where('live_children', '>', 0)
    .execute();
}

/** Children whose lifetime is over, and whose rows do not say so yet; those that ended first come first. */
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

/** Notes that a child's lifetime is over, for good, from the moment at which it ended. False: somebody noted it before. */
export async function expireChild(db: Db, child: Ref, now: number): Promise<boolean> {
  const expired = await db
    .updateTable('agents')
    .set((eb) => ({
      status: 'revoked' as const,
      status_since: eb.ref('expires_at'),
      // Nobody stopped it.
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

/** Whether none of these agents is over. Asked while the row of the eldest is locked, an end comes before or after whatever follows. */
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
