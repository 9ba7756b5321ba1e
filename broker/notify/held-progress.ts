/** Describes what has happened to a held call before its decision: who approved, and who corrected it. */
import { approvalsOf } from '../approvals/earlier-approvals.ts';
import { findAddresses } from '../store/former-owners.ts';
import type { HeldCall } from '../store/held-calls.ts';
import type { Db } from '../store/store.ts';
import { readable } from './message.ts';

/** The approvals of a call that several people have to approve: how many are needed, and by whom there are any that count. */
export type Approvals = { needed: number; approved: readonly { id: string; email: string | null }[] };

/** Returns what has happened to a held call that still waits: that it was corrected, and who has approved. */
export function progressOf(
  { corrected_at, corrected_by_email: by }: HeldCall,
  approvers: Approvals | undefined,
): string[] {
  const who = by === null ? '' : ` by ${readable(by)}`;
  const withdrawn = approvers ? ': approvals before that have no effect' : '';
  const corrected = corrected_at === null ? [] : [`Corrected${who}${withdrawn}`];
  if (!approvers || approvers.approved.length === 0) return corrected;
  const names = approvers.approved.map(({ id, email }) => readable(email ?? id));
  const left = approvers.needed - names.length;
  const others = left === 1 ? '1 more person has' : `${left} more people have`;
  return [...corrected, `Approved by ${names.join(', ')}; ${others} to approve`];
}

/** Returns the owners whose approvals of a call count, before the deciding one. */
export async function approvedOf(db: Db, held: HeldCall): Promise<Approvals['approved']> {
  const ids = (await approvalsOf(db, held)).map(({ decided_by }) => decided_by);
  const addresses = await findAddresses(db, held.organisation_id, ids);
  return ids.map((id) => ({ id, email: addresses.get(id) ?? null }));
}
