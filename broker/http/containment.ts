/** Why an agent cannot act although its own status is active: its expiry, its parent, or a stop of all agents. */
import type { Instant } from '../policy/facts.ts';
import type { AgentTable } from '../store/tables/agents.ts';

export const CONTAINED = ['expired', 'parent_suspended', 'parent_revoked', 'parent_expired', 'all_stopped'] as const;

type AgentLifetime = Pick<AgentTable, 'status' | 'expires_at'>;

/** Returns the first such reason, or null. `parent`: undefined for an agent without one. `stopped`: whether all agents are stopped. */
export function containedBy(
  agent: AgentLifetime,
  parent: AgentLifetime | undefined,
  stopped: boolean,
  now: Instant,
): (typeof CONTAINED)[number] | null {
  if (isExpired(agent, now)) return 'expired';
  if (parent === undefined) return stopped ? 'all_stopped' : null;
  if (isExpired(parent, now)) return 'parent_expired';
  if (parent.status === 'active') return stopped ? 'all_stopped' : null;
  return parent.status === 'suspended' ? 'parent_suspended' : 'parent_revoked';
}

const isExpired = ({ expires_at }: AgentLifetime, now: Instant): boolean => expires_at !== null && expires_at <= now;
