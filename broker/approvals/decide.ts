/** An owner's word on a held call: recorded and signed in the transaction that decides it, then the call is replayed. */

import { type PasskeyEvidence, provenanceOf, statusAt } from '../audit/approval-state.ts';
import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import type { Changing } from '../audit/record-change.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { type Decision, decideHeldCall } from '../store/approvals.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import type { ApprovalTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { rowOfHeld } from './held-call.ts';
import type { Replays } from './replay.ts';

export type OwnersWord = {
  status: Decision['status'];
  how: Decision['how'];
  /** Of a decision by passkey. */
  passkey?: PasskeyEvidence;
  /** For the agent to read. */
  note?: string;
  /** Of the request that the owner was shown: another one is not decided. */
  requestHash?: string;
  /** What else belongs into the transaction that decides. What it throws undoes the decision, and comes out as it is. */
  also?: (db: Db) => Promise<void>;
};

export type Decided =
  | { kind: 'decided'; approval: ApprovalTable; auditId: string; replayed: Promise<void> }
  | { kind: 'not_found' }
  | { kind: 'changed'; requestHash: string }
  | { kind: 'already_decided'; status: ApprovalTable['status'] }
  | { kind: 'expired' };

/** Undoes the transaction of whoever was not first. */
class Lost extends Error {}

/**
 * Decides a held call of the owner's organisation. Of any number of owners at the same instant one decides; `replayed`
 * then resolves when the approved call came to its end, whatever that was, and is not to be waited for with a connection
 * open that may close. Throws AuditUnavailable when the decision could not be recorded: then it is not made.
 */
export async function decideHeld(
  services: Changing & { replays: Replays },
  owner: { id: string; organisation_id: string },
  approvalId: string,
  word: OwnersWord,
  { correlationId }: { correlationId: string },
): Promise<Decided> {
  const { broker, recorder, changes, replays } = services;
  const { db } = broker.store;
  const held = await findHeldCall(db, owner.organisation_id, approvalId);
  if (!held) return { kind: 'not_found' };
  const now = broker.clock();
  const refused = whyNot(held, now);
  if (refused) return refused;
  if (word.requestHash !== undefined && word.requestHash !== held.request_hash)
    return { kind: 'changed', requestHash: held.request_hash };
  const ref = { organisation_id: held.organisation_id, id: held.id };
  const auditId = uuidv7(now);
  const decision: Decision = {
    status: word.status,
    at: now,
    by: owner.id,
    how: word.how,
    with: word.passkey ? JSON.stringify(word.passkey) : null,
    note: word.note ?? null,
    auditId,
    instanceId: broker.instanceId,
  };
  const row = rowOfHeld(held, provenanceOf(held, decision), { auditId, correlationId }, broker);
  row.kind = 'event';
  row.reason = `approval_${word.status}`;
  row.detail = word.note ?? null;
  let decided: ApprovalTable | undefined;
  let refusal: { error: unknown } | undefined;
  try {
    await recorder.finishWith(row, undefined, async (tx) => {
      decided = await decideHeldCall(tx, ref, decision);
      if (!decided) throw new Lost();
      await word.also?.(tx).catch((error) => {
        refusal = { error };
        throw error;
      });
      await changes.announce(tx, ref);
    });
  } catch (error) {
    if (refusal) throw refusal.error;
    if (!(error instanceof AuditUnavailable && error.cause instanceof Lost)) throw error;
    const after = await findHeldCall(db, owner.organisation_id, approvalId);
    return (after && whyNot(after, now)) ?? { kind: 'expired' };
  }
  changes.tell(ref);
  const approval = decided!;
  return {
    kind: 'decided',
    approval,
    auditId,
    replayed: approval.status === 'approved' ? replays.start(approval) : Promise.resolve(),
  };
}

function whyNot(held: HeldCall, now: number): Extract<Decided, { kind: 'already_decided' | 'expired' }> | undefined {
  const status = statusAt(held, now);
  if (status === 'pending') return undefined;
  return status === 'expired' ? { kind: 'expired' } : { kind: 'already_decided', status };
}
