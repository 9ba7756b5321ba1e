/** Pauses, windows and times to try again that a clock which was ahead put into the store: they would last for as long as it was ahead. */
import type { Instant } from '../policy/facts.ts';
import type { Db } from './store.ts';

/** No pause and no window is for longer than 5 minutes; the rest is for clocks that differ. */
const LONGEST_MS = 10 * 60_000;
/** Quiet hours put a message off by less than a day. */
const LONGEST_DUE_MS = 25 * 3_600_000;

/**
 * Ends them. Open breakers are half-open then, so that the next call is their trial; tokens may be refreshed, or asked for, again; messages are due. `now`:
 * by the store's clock, when it is in no doubt.
 */
export async function endFutureTimes(db: Db, now: Instant): Promise<void> {
  const beyond = now + LONGEST_MS;
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
  // A reminder is due before the end of what it reminds of, which may be a week from now.
  await db
    .updateTable('notice_deliveries')
    .set({ due_at: now })
    .where('state', '=', 'due')
    .where('step', '!=', 'reminder')
    .where((eb) => eb.or([eb('created_at', '>', beyond), eb('due_at', '>', now + LONGEST_DUE_MS)]))
    .where('due_at', '>', now)
    .execute();
}
