import type { ApprovalChanges } from '../audit/changes.ts';
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { expireHeldCalls } from '../store/approvals.ts';

/** Marks held calls past their deadline as expired. Readers see them as expired already. */
export async function expireHeld(
  { broker, changes }: { broker: Broker; changes: ApprovalChanges },
  now: Instant,
): Promise<void> {
  const expired = await broker.store.db.transaction().execute(async (db) => {
    const refs = await expireHeldCalls(db, now);
    for (const ref of refs) await changes.announce(db, ref);
    return refs;
  });
  for (const ref of expired) changes.tell(ref);
}
