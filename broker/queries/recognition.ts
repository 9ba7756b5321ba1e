/** Determines whether an agent is recognised, or why not (specification, POST /v1/trqp/recognition). */
import type { AgentStatus, Instant } from '../policy/facts.ts';
import type { FactsRow } from '../store/facts-columns.ts';

const RECOGNITION = [
  'recognized',
  'agent_suspended',
  'agent_revoked',
  'agent_pending',
  'parent_not_active',
  'expired',
] as const;

const STATUS: Record<Exclude<AgentStatus, 'active'>, (typeof RECOGNITION)[number]> = {
  suspended: 'agent_suspended',
  revoked: 'agent_revoked',
  deleted: 'agent_revoked',
  pending: 'agent_pending',
  pending_bind: 'agent_pending',
};

/**
 * Evaluates the agent's own lifetime and status, and for a child those of its parent. A child past its lifetime is `expired`, whatever status is stored.
 * Grants, policies and breakers are not considered.
 */
export function recognise(
  row: Pick<FactsRow, 'status' | 'expires_at' | 'parent_id' | 'parent_status' | 'parent_expires_at'>,
  now: Instant,
): (typeof RECOGNITION)[number] {
  if (isPast(row.expires_at, now)) return 'expired';
  if (row.status !== 'active') return STATUS[row.status];
  if (row.parent_id === null) return 'recognized';
  return row.parent_status === 'active' && !isPast(row.parent_expires_at ?? null, now)
    ? 'recognized'
    : 'parent_not_active';
}

const isPast = (moment: Instant | null, now: Instant): boolean => moment !== null && moment <= now;
