/**
 * Held calls: pending, decided, expired. held-calls.ts reads them with agent and reason for display; decisions.ts decides them; replays.ts has the
 * replay of approved ones.
 */

import { livingFamily } from './children.ts';
import type { Db } from './store.ts';
import type { ApprovalTable, NewApproval } from './tables/approvals.ts';

/** Stores a held call, its action sealed. */
export async function putApproval(db: Db, approval: NewApproval): Promise<void> {
  await db.insertInto('approvals').values(approval).execute();
}

/**
 * Serialises transactions that count the pending calls of this agent, by a row lock: counting and then inserting would let
 * concurrent calls exceed the cap.
 */
export async function lockPending(db: Db, organisationId: string, agentUuid: string): Promise<void> {
  await db
    .updateTable('agents')
    .set((eb) => ({ agent_id: eb.ref('agent_id') }))
    .where('organisation_id', '=', organisationId)
    .where('id', '=', agentUuid)
    .execute();
}

/** Number of pending calls of this agent and its children; those of an expired child do not count. */
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

/** Returns the sealed descriptions of these held calls of an organisation. */
export async function findSentences(
  db: Db,
  organisationId: string,
  ids: readonly string[],
): Promise<
  Pick<ApprovalTable, 'organisation_id' | 'id' | 'sentence' | 'method' | 'path' | 'audit_id' | 'corrected_at'>[]
> {
  if (ids.length === 0) return [];
  return await db
    .selectFrom('approvals')
    .select(['organisation_id', 'id', 'sentence', 'method', 'path', 'audit_id', 'corrected_at'])
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', ids)
    .execute();
}

/** An agent's held calls that are pending or changed after `since`: pending ones first, then newest first. */
export async function listApprovalsOf(
  db: Db,
  organisationId: string,
  agentUuid: string,
  page: { since: number; now: number; limit: number },
): Promise<OpenApproval[]> {
  return await db
    .selectFrom('approvals')
    .select([...OPEN_COLUMNS])
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentUuid)
    // True for all rows, but lets the database use the index instead of scanning years of decided calls.
    .where('status', 'in', ['pending', 'approved', 'denied', 'expired'])
    .where('expires_at', '>', page.since)
    .where((eb) => eb.or([eb('status', 'in', ['pending', 'expired']), eb('decided_at', '>', page.since)]))
    .orderBy((eb) => eb.case().when('status', '=', 'pending').then(0).else(1).end())
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(page.limit)
    .execute();
}

/** A held call without its sealed columns. */
export type OpenApproval = Omit<ApprovalTable, 'action' | 'result' | 'sentence' | 'basis' | 'asked'>;

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
  'decide_in',
  'decided_on',
  'approvers',
  'approved_before',
  'corrected_by',
  'corrected_at',
  'correction_audit_id',
] as const satisfies readonly (keyof ApprovalTable)[];

/** Returns which of these calls are settled, so that no agent needs to wait for them. */
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

/** Expires pending calls whose deadline has passed. Returns which. */
export async function expireHeldCalls(db: Db, now: number): Promise<Pick<ApprovalTable, 'organisation_id' | 'id'>[]> {
  return await db
    .updateTable('approvals')
    .set({ status: 'expired' })
    .where('status', '=', 'pending')
    .where('expires_at', '<=', now)
    .returning(['organisation_id', 'id'])
    .execute();
}
