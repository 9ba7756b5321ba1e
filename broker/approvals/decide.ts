/** An owner's decision on a held call: recorded and signed in the transaction that decides it, then the call is replayed. */

import {
  type ChannelEvidence,
  type DecidedHow,
  type PasskeyEvidence,
  provenanceOf,
  statusAt,
} from '../audit/approval-state.ts';
import { AuthorNotAllowed, findAuthor } from '../audit/author-role.ts';
import { eventRow } from '../audit/event-row.ts';
import type { Changing } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { withTimeout } from '../runtime/waits.ts';
import { findApproval } from '../store/approvals.ts';
import { type Decision, decideHeldCall, putApprovedBefore } from '../store/decisions.ts';
import type { SessionMarks } from '../store/ended-sessions.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { DECIDING } from '../store/passkeys.ts';
import type { Db } from '../store/store.ts';
import { isStoreOutage } from '../store/store-fault.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { countingApprovals, earlierApproval } from './earlier-approvals.ts';
import { eventOfHeld } from './held-call.ts';
import { putStanding, recordedStanding } from './make-standing.ts';
import { waitingIn } from './read-held.ts';
import type { Replays } from './replay.ts';
import type { CheckedStanding } from './standing-request.ts';

type Decider = { id: string; organisation_id: string };

export type OwnerDecision = {
  status: Decision['status'];
  how: DecidedHow;
  /** Present for a decision by passkey. */
  passkey?: PasskeyEvidence;
  /** Present for a decision by a button in a chat. */
  channel?: ChannelEvidence;
  /** Note to the agent. */
  note?: string;
  /** Hash of the request that was shown. If the request has another hash, nothing is decided. */
  requestHash?: string;
  /** A standing approval to create along with the approval. */
  standing?: CheckedStanding;
};

export type Decided =
  /** `held`: the call as decided, without the address of the owner. `standing`: the id of the standing approval that was created with it. */
  | {
      kind: 'decided';
      approval: ApprovalTable;
      held: HeldCall;
      auditId: string;
      replayed: Promise<void>;
      standing?: string;
    }
  /**
   * The approval is on record, and the call still waits: others have to approve, too. `approval`: the call as it waits. `auditId`: of the approval;
   * undefined: this owner had approved it before, and nothing was recorded.
   */
  | { kind: 'approved_in_part'; approval: ApprovalTable; given: number; needed: number; auditId?: string }
  | { kind: 'not_found' }
  | { kind: 'changed'; requestHash: string }
  /** `by`: the e-mail address of whoever decided it; null: that owner was removed. */
  | { kind: 'already_decided'; status: ApprovalTable['status']; by: string | null }
  | { kind: 'expired' };

/**
 * Decides a held call of the owner's organisation. Of concurrent decisions one wins. `replayed` resolves when the replay of the approved call has
 * finished, with any outcome; do not await it while a client connection is open. Throws AuditUnavailable when the decision could not be recorded, and
 * AuthorNotAllowed when the owner lost the role meanwhile, or the `session` was ended: then nothing is decided.
 */
export async function decideHeld(
  services: Changing & { replays: Replays } & Uses<'vault'>,
  owner: Decider,
  approvalId: string,
  by: OwnerDecision,
  ids: { correlationId: string; session?: SessionMarks | undefined },
): Promise<Decided> {
  const decided = await decideHeldIf(services, owner, approvalId, by, ids, (tx) => mayDecide(tx, owner, ids.session));
  if (decided.kind === 'undone') throw new AuthorNotAllowed();
  return decided;
}

/** The deciding transaction may have waited for others since the owner was authenticated. */
async function mayDecide(tx: Db, owner: Decider, session: SessionMarks | undefined): Promise<boolean> {
  const now = await findAuthor(tx, owner, session);
  return now !== undefined && DECIDING.includes(now.role);
}

/** More than other people can approve one call between two attempts. */
const MAX_ATTEMPTS = 20;

/** Like `decideHeld`, but decides nothing and returns `undone` when `condition`, which runs in the deciding transaction, returns false. */
export async function decideHeldIf(
  ...decision: Parameters<typeof decideAsRead>
): Promise<Decided | { kind: 'undone' }> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const decided = await decideAsRead(...decision);
    if (decided !== CHANGED_MEANWHILE) return decided;
  }
  throw new Error('The approvals of a held call changed during every attempt to decide it.');
}

/** Somebody else approved or corrected the call since it was read, or an earlier approval does not count any more: nothing was decided. */
const CHANGED_MEANWHILE = Symbol('changed meanwhile');

async function decideAsRead(
  services: Changing & { replays: Replays } & Uses<'vault'>,
  owner: Decider,
  approvalId: string,
  by: OwnerDecision,
  { correlationId }: { correlationId: string },
  condition: (tx: Db) => Promise<boolean>,
): Promise<Decided | { kind: 'undone' } | typeof CHANGED_MEANWHILE> {
  const { broker, recorder, changes, replays } = services;
  const { db } = broker.store;
  const held = await findHeldCall(db, owner.organisation_id, approvalId);
  if (!held) return { kind: 'not_found' };
  const now = broker.clock();
  const refused = whyNot(held, now);
  if (refused) return refused;
  // Approving a corrected call requires the hash of the request that was shown.
  const shown =
    by.requestHash ?? (held.corrected_at === null || by.status === 'denied' ? held.request_hash : undefined);
  if (shown !== held.request_hash) return { kind: 'changed', requestHash: held.request_hash };
  const ref = { organisation_id: held.organisation_id, id: held.id };
  const needed = held.approvers ?? 1;
  const before = needed === 1 ? [] : await countingApprovals(db, held);
  const given = before.length + 1;
  if (by.status === 'approved' && before.some((one) => one.decided_by === owner.id))
    return { kind: 'approved_in_part', approval: held, given: before.length, needed };
  const isLast = by.status === 'denied' || given >= needed;
  const auditId = uuidv7(now);
  const decision: Decision = {
    status: by.status,
    at: now,
    by: owner.id,
    how: by.how === 'channel' ? 'api' : by.how,
    with: by.passkey ? JSON.stringify(by.passkey) : null,
    on: by.channel ? JSON.stringify(by.channel) : null,
    note: by.note ?? null,
    auditId,
    instanceId: broker.instanceId,
  };
  const provenance = provenanceOf(held, { ...decision, how: by.how, before });
  const about = eventOfHeld(held, provenance, { auditId, correlationId, now }, broker);
  const made = by.standing && recordedStanding(by.standing, now);
  const event = made ? { ...about, flags: { ...about.flags, standing_approval: made } } : about;
  const read = { ...ref, request_hash: shown, approved_before: held.approved_before };
  let decided: ApprovalTable | undefined;
  const recorded = await recorder.record<undefined, 'not_as_read' | 'undone'>({
    row: eventRow({ ...event, reason: isLast ? `approval_${by.status}` : 'approval_given', detail: by.note ?? null }),
    value: undefined,
    together: async (tx) => {
      decided = isLast
        ? await decideHeldCall(tx, read, decision, before.length === 0 ? null : JSON.stringify(before))
        : await putApprovedBefore(tx, read, JSON.stringify([...before, earlierApproval(provenance, auditId)]), now);
      if (!decided) return rollback('not_as_read');
      if (before.length > 0 && (await countingApprovals(tx, held)).length < before.length)
        return rollback('not_as_read');
      if (!(await condition(tx))) return rollback('undone');
      if (by.standing && made) await putStanding(tx, broker, held, { ready: by.standing, made, decision });
      await changes.announce(tx, ref);
      return undefined;
    },
  });
  if (recorded instanceof RolledBack && recorded.reason === 'undone') return { kind: 'undone' };
  if (recorded instanceof RolledBack || !decided) {
    const after = await findHeldCall(db, owner.organisation_id, approvalId);
    const why = after && whyNot(after, now);
    return why ?? (after ? CHANGED_MEANWHILE : { kind: 'expired' });
  }
  changes.tell(ref);
  const approval: ApprovalTable = decided;
  if (!isLast) return { kind: 'approved_in_part', approval, given, needed, auditId };
  return {
    kind: 'decided',
    approval,
    held: { ...held, ...approval },
    auditId,
    ...(made && { standing: made.id }),
    replayed: approval.status === 'approved' ? replays.start(approval) : Promise.resolve(),
  };
}

/**
 * Returns a decided call after its replay has finished or `timeoutMs` have passed (the replay then continues), and what else waits in its
 * organisation. While the store is unavailable: the call as decided, which is on record, and `waiting` null.
 */
export async function afterReplay(
  { broker }: Uses<'clock' | 'store' | 'storeOutage'>,
  { approval, replayed }: Pick<Extract<Decided, { kind: 'decided' }>, 'approval' | 'replayed'>,
  timeoutMs: number,
): Promise<{ approval: ApprovalTable; waiting: Awaited<ReturnType<typeof waitingIn>> | null }> {
  await withTimeout(replayed, timeoutMs);
  const { organisation_id: organisationId, id } = approval;
  try {
    const found = await findApproval(broker.store.db, organisationId, id);
    return { approval: found ?? approval, waiting: await waitingIn(broker, organisationId) };
  } catch (error) {
    if (!isStoreOutage(error)) throw error;
    broker.storeOutage.failed(error);
    return { approval, waiting: null };
  }
}

function whyNot(held: HeldCall, now: number): Extract<Decided, { kind: 'already_decided' | 'expired' }> | undefined {
  const status = statusAt(held, now);
  if (status === 'pending') return undefined;
  return status === 'expired' ? { kind: 'expired' } : { kind: 'already_decided', status, by: held.decided_by_email };
}
