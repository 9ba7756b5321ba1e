/** Pauses and windows that a clock which was ahead put into the store: they would last for as long as it was ahead. */
import type { Instant } from '../policy/facts.ts';
import type { Db } from './store.ts';

/** None of them is for longer than 5 minutes; the rest is for clocks that differ. */
const LONGEST_MS = 10 * 60_000;

/**
 * Ends them. Open breakers are half-open then, so that the next call is their trial; tokens may be refreshed, or asked for, again. `now`: by
 * the store's clock, when it is in no doubt.
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
}
