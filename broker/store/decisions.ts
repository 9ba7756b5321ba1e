/** Decisions on held calls, and corrections: each statement changes a call only while it is pending as it was read. */
import type { AuditTable } from './audit-columns.ts';
import type { Db } from './store.ts';
import type { ApprovalTable } from './tables/approvals.ts';

export type Decision = {
  status: 'approved' | 'denied';
  at: number;
  by: string;
  how: NonNullable<ApprovalTable['decided_how']>;
  /** JSON; see ApprovalTable. */
  with: string | null;
  on?: string | null;
  note: string | null;
  auditId: AuditTable['id'];
  /** The process that makes the replay, when the call is approved. */
  instanceId: string;
};

/** A held call with the request that was shown. */
type ShownRequest = Pick<ApprovalTable, 'organisation_id' | 'id' | 'request_hash'>;

/** Updates the call while it is pending with this request. */
const updatePending = (db: Db, { organisation_id, id, request_hash }: ShownRequest, now: number) =>
  db
    .updateTable('approvals')
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where('request_hash', '=', request_hash)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now);

/** A held call as it was read for a decision: with another request, or other approvals, it is not decided. */
export type ReadForDecision = ShownRequest & Pick<ApprovalTable, 'approved_before'>;

/** Updates the call while it is pending as it was read. */
const updateAsRead = (db: Db, { approved_before: before, ...shown }: ReadForDecision, now: number) =>
  updatePending(db, shown, now).where('approved_before', before === null ? 'is' : '=', before);

/** A corrected request of a held call, sealed, with its hash and related columns. `asked`: the agent's original request. */
export type Correction = Pick<
  ApprovalTable,
  | 'path'
  | 'request_hash'
  | 'action'
  | 'asked'
  | 'sentence'
  | 'basis'
  | 'decide_in'
  | 'approvers'
  | 'correction_audit_id'
> & { by: string; at: number };

/**
 * Replaces the pending request with hash `request_hash` by a corrected one, for which nobody has approved yet. False: it is not pending any more, or was
 * changed.
 */
export async function correctHeldCall(
  db: Db,
  shown: ShownRequest,
  { by, at, ...columns }: Correction,
): Promise<boolean> {
  const done = await updatePending(db, shown, at)
    .set({ ...columns, approved_before: null, corrected_by: by, corrected_at: at })
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/**
 * Decides a pending call and claims the replay of an approved one, in one guarded statement, so that one of concurrent callers wins.
 * `approvedBefore`: the approvals by others that count. Returns the updated row; undefined: the call was already decided, has expired, or was corrected or
 * approved by somebody else meanwhile.
 */
export async function decideHeldCall(
  db: Db,
  approval: ReadForDecision,
  decision: Decision,
  approvedBefore: string | null = null,
): Promise<ApprovalTable | undefined> {
  const approved = decision.status === 'approved';
  return await updateAsRead(db, approval, decision.at)
    .set({
      approved_before: approvedBefore,
      status: decision.status,
      decided_at: decision.at,
      decided_by: decision.by,
      decided_how: decision.how,
      decided_with: decision.with,
      decided_on: decision.on ?? null,
      note: decision.note,
      decision_audit_id: decision.auditId,
      exec_state: approved ? 'claimed' : 'none',
      lease_owner: approved ? decision.instanceId : null,
      fence: approved ? 1 : 0,
    })
    .returningAll()
    .executeTakeFirst();
}

/**
 * Stores the approvals of a pending call that needs more of them. Returns the updated row; undefined: as for `decideHeldCall`.
 *
 * @param now milliseconds since the epoch
 */
export async function putApprovedBefore(
  db: Db,
  approval: ReadForDecision,
  approvedBefore: string,
  now: number,
): Promise<ApprovalTable | undefined> {
  return await updateAsRead(db, approval, now)
    .set({ approved_before: approvedBefore })
    .returningAll()
    .executeTakeFirst();
}
