/**
 * Held calls: waiting, decided, expired. With who asked and why they were held they are in held-calls.ts; what becomes of an
 * approved one is in replays.ts.
 */

import type { AuditTable } from './audit-columns.ts';
import { livingFamily } from './children.ts';
import type { ApprovalTable, NewApproval } from './schema.ts';
import type { Db } from './store.ts';

/** Stores a held call, its action sealed. */
export async function putApproval(db: Db, approval: NewApproval): Promise<void> {
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

/** How many calls of this agent and of its children wait for a decision; those of a child that is over wait for nothing. */
export async function countPending(db: Db, organisationId: string, agentUuid: string, now: number): Promise<number> {
  const row = await db
    .selectFrom('approvals')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', livingFamily(db, organisationId, agentUuid))
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

/** An agent's held calls of which something is newer than `since`, or that still wait: these first, then newest first. */
export async function listApprovalsOf(
  db: Db,
  organisationId: string,
  agentUuid: string,
  page: { since: number; now: number; limit: number },
): Promise<Omit<ApprovalTable, 'action' | 'result'>[]> {
  return await db
    .selectFrom('approvals')
    .select([...OPEN_COLUMNS])
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentUuid)
    // So they all do, because nothing is decided past its time; said like this, years of decided ones cost nothing.
    .where('status', 'in', ['pending', 'approved', 'denied', 'expired'])
    .where('expires_at', '>', page.since)
    .where((eb) => eb.or([eb('status', 'in', ['pending', 'expired']), eb('decided_at', '>', page.since)]))
    .orderBy((eb) => eb.case().when('status', '=', 'pending').then(0).else(1).end())
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(page.limit)
    .execute();
}

const OPEN_COLUMNS = [
  'organisation_id',
  'id',
  'agent_id',
  'audit_id',
  'status',
  'platform_id',
  'scope',
  'method',
  'path',
  'request_hash',
  'created_at',
  'expires_at',
  'decided_at',
  'decided_by',
  'decided_how',
  'note',
  'decision_audit_id',
  'exec_state',
  'lease_owner',
  'fence',
  'executed_at',
  'execution_error',
  'result_summary',
  'replay_audit_id',
  'decided_with',
] as const satisfies readonly (keyof ApprovalTable)[];

/** Of these, those on which no agent needs to wait any longer for news. */
export async function findSettled(db: Db, ids: readonly string[], now: number): Promise<string[]> {
  const rows = await db
    .selectFrom('approvals')
    .select('id')
    .where('id', 'in', ids)
    .where((eb) =>
      eb.or([
        eb('status', 'in', ['denied', 'expired']),
        eb('exec_state', 'in', ['done', 'failed', 'unknown']),
        eb.and([eb('status', '=', 'pending'), eb('expires_at', '<=', now)]),
      ]),
    )
    .execute();
  return rows.map(({ id }) => id);
}

export type Decision = {
  status: 'approved' | 'denied';
  at: number;
  by: string;
  how: NonNullable<ApprovalTable['decided_how']>;
  /** JSON; see ApprovalTable. */
  with: string | null;
  note: string | null;
  auditId: AuditTable['id'];
  /** The process that replays it, when it is approved. */
  instanceId: string;
};

/** Whether any of these held calls of an agent is a read. */
export async function holdsRead(
  db: Db,
  organisationId: string,
  agentUuid: string,
  ids: readonly string[],
): Promise<boolean> {
  if (ids.length === 0) return false;
  const row = await db
    .selectFrom('approvals')
    .select('id')
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentUuid)
    .where('id', 'in', ids)
    .where('method', 'in', ['GET', 'HEAD'])
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/**
 * Decides a held call that still waits, and with an approval claims its replay, in one guarded statement: of any number
 * at once one wins. Answers the row as it is now; undefined: it was decided, or is over.
 */
export async function decideHeldCall(
  db: Db,
  approval: Pick<ApprovalTable, 'organisation_id' | 'id'>,
  decision: Decision,
): Promise<ApprovalTable | undefined> {
  const approved = decision.status === 'approved';
  return await db
    .updateTable('approvals')
    .set({
      status: decision.status,
      decided_at: decision.at,
      decided_by: decision.by,
      decided_how: decision.how,
      decided_with: decision.with,
      note: decision.note,
      decision_audit_id: decision.auditId,
      exec_state: approved ? 'claimed' : 'none',
      lease_owner: approved ? decision.instanceId : null,
      fence: approved ? 1 : 0,
    })
    .where('organisation_id', '=', approval.organisation_id)
    .where('id', '=', approval.id)
    .where('status', '=', 'pending')
    .where('expires_at', '>', decision.at)
    .returningAll()
    .executeTakeFirst();
}

/** Ends the waiting of held calls whose time is over. Answers which. */
export async function expireHeldCalls(db: Db, now: number): Promise<Pick<ApprovalTable, 'organisation_id' | 'id'>[]> {
  return await db
    .updateTable('approvals')
    .set({ status: 'expired' })
    .where('status', '=', 'pending')
    .where('expires_at', '<=', now)
    .returning(['organisation_id', 'id'])
    .execute();
}
