/** When servers were last asked for a tool that had changed: its definition may be again what was accepted. */
import type { Instant } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import type { ToolPlace } from '../store/mcp-tools.ts';

export type ToolChecks = {
  /** Whether the server may be asked now; when it may, that is noted. */
  take(place: ToolPlace, now: Instant): boolean;
};

/** Every call of a tool that has changed would have the server asked, and agents do try again. */
const EVERY_MS = 5_000;
const KEPT = 1_000;

/** Counted in this process: several replicas may each ask once in that time. */
export function toolChecks(): ToolChecks {
  const last = recentlyUsed<Instant>(KEPT);
  return {
    take: ({ organisationId, platformId, server }, now) => {
      const key = JSON.stringify([organisationId, platformId, server]);
      const before = last.get(key);
      if (before !== undefined && Math.abs(now - before) < EVERY_MS) return false;
      last.set(key, now);
      return true;
    },
  };
}
