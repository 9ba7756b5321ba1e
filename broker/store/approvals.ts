import type { ApprovalTable } from './schema.ts';
import type { Db } from './store.ts';

/** Stores a held call, its action sealed. */
export async function putApproval(db: Db, approval: ApprovalTable): Promise<void> {
  await db.insertInto('approvals').values(approval).execute();
}

/**
 * Waits for every other transaction that counts calls of this agent, and makes later ones wait for this: counting and
 * then inserting would let as many pass the cap as ask at once.
 */
export async function lockPending(db: Db, organisationId: string, agentUuid: string): Promise<void> {
  await db
    .updateTable('agents')
    .set((eb) => ({ agent_id: eb.ref('agent_id') }))
    .where('organisation_id', '=', organisationId)
    .where('id', '=', agentUuid)
    .execute();
}

/** How many calls of this agent wait for a decision. */
export async function countPending(db: Db, organisationId: string, agentUuid: string, now: number): Promise<number> {
  const row = await db
    .selectFrom('approvals')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentUuid)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** One held call of an organisation, or undefined. */
export async function findApproval(db: Db, organisationId: string, id: string): Promise<ApprovalTable | undefined> {
  return await db
    .selectFrom('approvals')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
}
