import { earliest } from '../policy/attenuation.ts';
import type { Instant } from '../policy/facts.ts';
import type { FactsRow } from '../store/facts-columns.ts';

/** Until when what an agent asks of people waits for them: as long as its organisation says, and no longer than it lives. */
export function waitsUntil(agent: FactsRow, now: Instant): Instant {
  const lives = earliest(agent.expires_at, agent.parent_expires_at ?? null);
  return Math.min(now + agent.approval_ttl_ms, lives ?? Number.POSITIVE_INFINITY);
}
