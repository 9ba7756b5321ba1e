import { type ApprovalChanges, changeAndNotify } from '../audit/changes.ts';
import type { Uses } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { expireHeldCalls } from '../store/approvals.ts';

/** Marks held calls past their deadline as expired. Readers see them as expired already. */
export const expireHeld = (
  { broker, changes }: Uses<'store'> & { changes: ApprovalChanges },
  now: Instant,
): Promise<void> => changeAndNotify(broker.store, changes, (tx) => expireHeldCalls(tx, now));
