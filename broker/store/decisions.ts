/** Decisions on held calls, and corrections: each statement changes a call only while it is pending as it was read. */
import { z } from 'zod';
import { uuidv4 } from '../crypto/ids.ts';
import { findApproval } from './approvals.ts';
import type { AuditTable } from './audit-columns.ts';
import { dropDue } from './notice-deliveries.ts';
import { putNotice } from './notice-outbox.ts';
import type { Db } from './store.ts';
import { readStored } from './stored-json.ts';
import type { ApprovalTable } from './tables/approvals.ts';
import type { OwnerTable } from './tables/organisations.ts';

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

/** Puts a notice into the outbox that a call which still waits has changed. */
const noteChanged = (db: Db, { organisation_id, id }: Omit<ShownRequest, 'request_hash'>, now: number): Promise<void> =>
  putNotice(db, { organisation_id, id: uuidv4(), event: 'call_changed', subject_id: id, created_at: now });

/**
 * Replaces the pending request with hash `request_hash` by a corrected one, for which nobody has approved yet. Owners are notified again of a call that
 * somebody had approved: that approval has no effect any more. False: it is not pending any more, or was changed.
 */
export async function correctHeldCall(
  db: Db,
  shown: ShownRequest,
  { by, at, ...columns }: Correction,
): Promise<boolean> {
  const { organisation_id, id } = shown;
  const before = await findApproval(db, organisation_id, id);
  const done = await updatePending(db, shown, at)
    .set({ ...columns, approved_before: null, corrected_by: by, corrected_at: at })
    .returning(['agent_id', 'platform_id'])
    .executeTakeFirst();
  if (!done) return false;
  await noteChanged(db, shown, at);
  if (before?.approved_before == null) return true;
  await dropDue(db, { organisation_id, event: 'call_held', subject_id: id });
  // Later than the other notice, which updates only messages that were sent before.
  const again = { ...done, organisation_id, id: uuidv4(), event: 'call_held', subject_id: id } as const;
  await putNotice(db, { ...again, created_at: at + 1 });
  return true;
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
 * Stores the approvals of a pending call that needs more of them, with a notice. Returns the updated row; undefined: as for `decideHeldCall`.
 *
 * @param now milliseconds since the epoch
 */
export async function putApprovedBefore(
  db: Db,
  approval: ReadForDecision,
  approvedBefore: string,
  now: number,
): Promise<ApprovalTable | undefined> {
  const approved = await updateAsRead(db, approval, now)
    .set({ approved_before: approvedBefore })
    .returningAll()
    .executeTakeFirst();
  if (approved) await noteChanged(db, approved, now);
  return approved;
}

const StoredApprovers = z.array(z.looseObject({ decided_by: z.string() }));

/**
 * Removes an owner's approvals from the calls that still wait for others; call it in a transaction, before it changes anything else of the owner's. Returns
 * the number of these calls.
 */
export async function withdrawApprovals(
  db: Db,
  { organisation_id, id: owner }: Pick<OwnerTable, 'organisation_id' | 'id'>,
  now: number,
): Promise<number> {
  // Locks the calls: an approval of this owner that is being committed is seen here, and a later one finds the owner's sessions and passkeys ended.
  const waiting = await db
    .updateTable('approvals')
    .set((eb) => ({ approved_before: eb.ref('approved_before') }))
    .where('organisation_id', '=', organisation_id)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .where('approvers', '>', 1)
    .returning(['id', 'approved_before'])
    .execute();
  let withdrawn = 0;
  for (const { id, approved_before: text } of waiting) {
    const before = text === null ? [] : readStored(StoredApprovers, text, `approvals of held call ${id}`);
    const others = before.filter(({ decided_by }) => decided_by !== owner);
    if (others.length === before.length) continue;
    await db
      .updateTable('approvals')
      .set({ approved_before: others.length === 0 ? null : JSON.stringify(others) })
      .where('organisation_id', '=', organisation_id)
      .where('id', '=', id)
      .execute();
    await noteChanged(db, { organisation_id, id }, now);
    withdrawn += 1;
  }
  return withdrawn;
}
