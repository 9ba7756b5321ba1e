/** Resets pauses, windows and retry times that were stored by a clock that was ahead, and would last for as long as it was ahead. */
import type { Instant } from '../policy/facts.ts';
import type { Db } from './store.ts';

/** No pause or window exceeds 5 minutes; the rest is tolerance for clock differences. */
const MAX_DURATION_MS = 10 * 60_000;
/** Quiet hours delay a message by less than a day. */
const MAX_DUE_MS = 25 * 3_600_000;

/**
 * Ends such times: open breakers become half-open, so that the next call is their trial; tokens can be refreshed or requested again;
 * messages are due. `now`: by the store's clock, when its time is known to be right.
 */
export async function endFutureTimes(db: Db, now: Instant): Promise<void> {
  const beyond = now + MAX_DURATION_MS;
  await db
    .updateTable('breakers')
    .set({ open_until: now, trial_at: null })
    .where((eb) => eb.or([eb('open_until', '>', beyond), eb('trial_at', '>', beyond)]))
    .execute();
  for (const table of ['breakers', 'refusal_counts'] as const)
    await db.updateTable(table).set({ window_start: now }).where('window_start', '>', beyond).execute();
  for (const table of ['connections', 'person_tokens'] as const)
    await db.updateTable(table).set({ refresh_claim_until: now }).where('refresh_claim_until', '>', beyond).execute();
  await db.updateTable('upstream_tokens').set({ claim_until: now }).where('claim_until', '>', beyond).execute();
  // A reminder is excluded: it is due before the deadline it reminds of, which may be a week ahead.
  await db
    .updateTable('notice_deliveries')
    .set({ due_at: now })
    .where('state', '=', 'due')
    .where('step', '!=', 'reminder')
    .where((eb) => eb.or([eb('created_at', '>', beyond), eb('due_at', '>', now + MAX_DUE_MS)]))
    .where('due_at', '>', now)
    .execute();
}
