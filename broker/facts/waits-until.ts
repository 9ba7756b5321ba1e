import { earliest } from '../policy/attenuation.ts';
import type { Instant } from '../policy/facts.ts';
import type { FactsRow } from '../store/facts-columns.ts';

/**
 * Returns when a request of an agent to people expires: after the organisation's time to live for approvals, or when the agent or its parent expires, if that
 * is earlier.
 */
export function waitsUntil(agent: FactsRow, now: Instant): Instant {
  const lives = earliest(agent.expires_at, agent.parent_expires_at ?? null);
  return Math.min(now + agent.approval_ttl_ms, lives ?? Number.POSITIVE_INFINITY);
}
