/** Approvals of a held call that several people have to approve. */
import { type ApprovalProvenance, approvedBefore, type EarlierApproval } from '../audit/approval-state.ts';
import type { Broker } from '../broker.ts';
import { findAddresses } from '../store/former-owners.ts';
import { listOwners } from '../store/organisations.ts';
import { DECIDING } from '../store/passkeys.ts';
import type { Db } from '../store/store.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';

type Approved = Pick<ApprovalTable, 'organisation_id' | 'id' | 'approved_before'>;

/** Returns the approvals of a call that count: those by owners who were not removed, and may still decide. */
export async function countingApprovals(db: Db, held: Approved): Promise<EarlierApproval[]> {
  const before = approvedBefore(held);
  if (before.length === 0) return before;
  const owners = await listOwners(db, held.organisation_id);
  const deciding = new Set(owners.filter(({ role }) => DECIDING.includes(role)).map(({ id }) => id));
  return before.filter(({ decided_by: id }) => deciding.has(id));
}

/** Returns the approvals of a call before the deciding one; of a pending call those that count so far. */
export const approvalsOf = async (
  db: Db,
  held: Approved & Pick<ApprovalTable, 'status'>,
): Promise<EarlierApproval[]> => (held.status === 'pending' ? await countingApprovals(db, held) : approvedBefore(held));

/** Returns who approved before the deciding person, or so far, with their addresses, as far as these are stored. */
export async function approversNamed({ store }: Pick<Broker, 'store'>, held: Parameters<typeof approvalsOf>[1]) {
  const before = await approvalsOf(store.db, held);
  const ids = before.map((one) => one.decided_by);
  const addresses = await findAddresses(store.db, held.organisation_id, ids);
  return before.map(({ decided_by, decided_at, how }) => ({
    approved_by: decided_by,
    approved_by_email: addresses.get(decided_by) ?? null,
    approved_at: decided_at,
    how,
  }));
}

/** Returns an approval as it is stored until others have approved, too. `auditId`: of its audit row. */
export const earlierApproval = (
  { decided_by, decided_at, how, passkey, channel }: ApprovalProvenance,
  auditId: string,
): EarlierApproval => ({
  decided_by,
  decided_at,
  how,
  ...(passkey && { passkey }),
  ...(channel && { channel }),
  audit_id: auditId,
});
