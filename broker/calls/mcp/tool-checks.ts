/** When servers were last asked about a changed tool, whose definition may match the accepted one again, or about one that is not stored. */
import type { Instant } from '../../policy/facts.ts';
import { recentlyUsed } from '../../runtime/recently-used.ts';
import type { ToolPlace } from '../../store/mcp-tools.ts';

export type ToolChecks = {
  /** Returns whether the server may be asked now, and if so notes the time. */
  take(place: ToolPlace, now: Instant): boolean;
};

/** Without this limit every call of such a tool would make the broker ask the server, and agents do retry. */
const MIN_INTERVAL_MS = 5_000;
const CACHE_SIZE = 1_000;

/** Per process: each of several replicas may ask once in that time. */
export function toolChecks(): ToolChecks {
  const last = recentlyUsed<Instant>(CACHE_SIZE);
  return {
    take: ({ organisationId, platformId, server }, now) => {
      const key = JSON.stringify([organisationId, platformId, server]);
      const before = last.get(key);
      if (before !== undefined && Math.abs(now - before) < MIN_INTERVAL_MS) return false;
      last.set(key, now);
      return true;
    },
  };
}
