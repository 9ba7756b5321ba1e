import type { ApprovalTable } from './schema.ts';
import type { Db } from './store.ts';

/** Stores a held call, its action sealed. */
export async function putApproval(db: Db, approval: ApprovalTable): Promise<void> {
  await db.insertInto('approvals').values(approval).execute();
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
