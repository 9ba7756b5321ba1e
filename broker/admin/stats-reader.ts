/** Reads the numbers of an organisation, at most every few seconds: however many people look, the store is asked once. */
import type { Broker } from '../broker.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { type ActivityStats, activityStats, type Range } from './activity-stats.ts';

const KEPT_MS = 15_000;
/** Organisations, ranges and zones whose numbers are kept. */
const MOST_KEPT = 200;

/** `zone`: by whose days (IANA). */
export type StatsReader = (organisationId: string, range: Range, zone: string) => Promise<ActivityStats>;

export function statsReader(broker: Pick<Broker, 'store' | 'clock'>): StatsReader {
  const kept = recentlyUsed<{ at: number; stats: Promise<ActivityStats> }>(MOST_KEPT);
  return (organisationId, range, zone) => {
    const now = broker.clock();
    const key = `${organisationId} ${range} ${zone}`;
    const known = kept.get(key);
    if (known !== undefined && now >= known.at && now - known.at < KEPT_MS) return known.stats;
    const stats = activityStats(broker, organisationId, { range, zone, now });
    // What failed is asked again; so is nothing, which costs nothing, and the first call is waited for.
    stats.then(
      ({ totals }) => totals.calls === 0 && kept.delete(key),
      () => kept.delete(key),
    );
    kept.set(key, { at: now, stats });
    return stats;
  };
}
