/** The state of an approval at a given time (specification, States and transitions, Approval). */
import { z } from 'zod';
import type { Instant } from '../policy/facts.ts';
import { readStored } from '../store/stored-json.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';

type Stated = Pick<ApprovalTable, 'status' | 'expires_at' | 'exec_state'>;

/**
 * Returns the status to report for a held call, access request or registration. A pending one past its deadline is `expired`, even if
 * the stored row still says `pending`.
 */
export const statusAt = <Status extends string>(
  { status, expires_at }: { status: Status; expires_at: Instant },
  now: Instant,
): Status | 'expired' => (status === 'pending' && expires_at <= now ? 'expired' : status);

/** Whether the state is final: denied, expired, or approved and replayed with any outcome. */
export function isSettled(approval: Stated, now: Instant): boolean {
  const status = statusAt(approval, now);
  if (status === 'approved') return approval.exec_state !== 'claimed' && approval.exec_state !== 'intent';
  return status !== 'pending';
}

/** The passkey that decided, for the receipt. */
export type PasskeyEvidence = {
  credential_id: string;
  /** Whether the authenticator performed user verification (biometrics or PIN). */
  user_verified: boolean;
  /** `not_kept`: a synced passkey, which always reports 0 (WebAuthn section 6.1.1). */
  counter: 'increased' | 'not_kept';
};

/** Returns the evidence of an assertion by this passkey, for the receipt. */
export const evidenceOfPasskey = (
  { credential_id }: { credential_id: string },
  { counter, userVerified }: { counter: number; userVerified: boolean },
): PasskeyEvidence => ({
  credential_id,
  user_verified: userVerified,
  counter: counter === 0 ? 'not_kept' : 'increased',
});

const StoredEvidence: z.ZodType<PasskeyEvidence> = z.object({
  credential_id: z.string(),
  user_verified: z.boolean(),
  counter: z.enum(['increased', 'not_kept']),
});

/** How the approval was decided. `channel`: by a button in a chat. */
export type DecidedHow = NonNullable<ApprovalTable['decided_how']> | 'channel';

/** Returns how the approval was decided; null when it is not decided yet. */
export const howDecided = ({
  decided_how: how,
  decided_on: on,
}: Pick<ApprovalTable, 'decided_how' | 'decided_on'>): DecidedHow | null => (on === null ? how : 'channel');

/** The chat channel whose button decided, and the person's user id there, for the receipt. */
export type ChannelEvidence = { id: string; name: string; kind: string; user: string };

const StoredChannel: z.ZodType<ChannelEvidence> = z.object({
  id: z.string(),
  name: z.string(),
  kind: z.string(),
  user: z.string(),
});

/** Who approved and how. `audit_id`: the audit row of it, with its receipt. */
export type EarlierApproval = {
  decided_by: string;
  decided_at: string;
  how: DecidedHow;
  passkey?: PasskeyEvidence;
  channel?: ChannelEvidence;
  audit_id: string;
};

const StoredApprovals: z.ZodType<EarlierApproval[]> = z.array(
  z.object({
    decided_by: z.string(),
    decided_at: z.string(),
    how: z.enum(['console', 'api', 'passkey', 'channel']),
    passkey: StoredEvidence.exactOptional(),
    channel: StoredChannel.exactOptional(),
    audit_id: z.string(),
  }),
);

/** Returns the approvals of a call before the deciding one, or so far, of which several are needed. */
export const approvedBefore = ({ id, approved_before: text }: Pick<ApprovalTable, 'id' | 'approved_before'>) =>
  text === null ? [] : readStored(StoredApprovals, text, `approvals of held call ${id}`);

/** Who decided and how: on the audit rows of the decision and of the replay, and in their receipts. */
export type ApprovalProvenance = {
  decided_by: string;
  decided_at: string;
  how: DecidedHow;
  request_hash: string;
  hold_audit_id: string;
  passkey?: PasskeyEvidence;
  channel?: ChannelEvidence;
  /** For a call that several people have to approve: how many, and who approved before. */
  approvers?: number;
  approved_before?: readonly EarlierApproval[];
};

/** Builds the provenance of a decision, from its stored columns or while it is being made. */
export function provenanceOf(
  approval: Pick<ApprovalTable, 'request_hash' | 'audit_id' | 'approvers'>,
  decision: {
    at: Instant;
    by: string;
    how: DecidedHow;
    with: string | null;
    on?: string | null;
    before: readonly EarlierApproval[];
  },
): ApprovalProvenance {
  return {
    decided_by: decision.by,
    decided_at: new Date(decision.at).toISOString(),
    how: decision.how,
    request_hash: approval.request_hash,
    hold_audit_id: approval.audit_id,
    ...(decision.with !== null && { passkey: readStored(StoredEvidence, decision.with, 'passkey evidence') }),
    ...(decision.on !== null &&
      decision.on !== undefined && { channel: readStored(StoredChannel, decision.on, 'channel of a decision') }),
    ...(approval.approvers !== null && { approvers: approval.approvers, approved_before: decision.before }),
  };
}
