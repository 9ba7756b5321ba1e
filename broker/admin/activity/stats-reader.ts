/** Caches an organisation's statistics for some seconds, so that concurrent readers cause one query. */
import type { Broker } from '../../broker.ts';
import { recentlyUsed } from '../../runtime/recently-used.ts';
import { type ActivityStats, activityStats, type Range } from './stats.ts';

const CACHE_MS = 15_000;
/** Limit of cached combinations of organisation, range and zone. */
const MAX_ENTRIES = 200;

/** `zone`: time zone that defines the days (IANA). */
export type StatsReader = (organisationId: string, range: Range, zone: string) => Promise<ActivityStats>;

export function statsReader(broker: Pick<Broker, 'store' | 'clock'>): StatsReader {
  const kept = recentlyUsed<{ at: number; stats: Promise<ActivityStats> }>(MAX_ENTRIES);
  return (organisationId, range, zone) => {
    const now = broker.clock();
    const key = `${organisationId} ${range} ${zone}`;
    const known = kept.get(key);
    if (known !== undefined && now >= known.at && now - known.at < CACHE_MS) return known.stats;
    const stats = activityStats(broker, organisationId, { range, zone, now });
    // Failures are not cached. Neither is an empty result: it is cheap to compute, and the first call should show immediately.
    stats.then(
      ({ totals }) => totals.calls === 0 && kept.delete(key),
      () => kept.delete(key),
    );
    kept.set(key, { at: now, stats });
    return stats;
  };
}
