/** What a question about an agent that may be a child asks besides: of its parent, and in the same statement. */
import { sql } from 'kysely';
import type { AgentStatus } from '../policy/facts.ts';
import { addressOf } from './facts-breakers.ts';
import type { Bit, BreakerTable } from './schema.ts';

/**
 * What a row tells besides of an agent that may be a child: its parent, one of the parent's grants on the platform, and one of
 * the parent's breakers that are not closed. So there is a row for each of the agent's grants with each of these.
 */
export type FamilyFacts = {
  parent_agent_id: string | null;
  parent_name: string | null;
  parent_owner_id: string | null;
  parent_status: AgentStatus | null;
  parent_expires_at: number | null;
  parent_grant_id: string | null;
  parent_grant_connection_id: string | null;
  parent_grant_scopes: string | null;
  parent_grant_constraints: string | null;
  parent_grant_require_approval: Bit | null;
  parent_grant_expires_at: number | null;
  parent_breaker_cause: BreakerTable['cause'] | null;
  parent_breaker_opened_at: number | null;
  parent_breaker_open_until: number | null;
  parent_breaker_trial_at: number | null;
};

/** Table and column of each of them, in its order. */
export const FAMILY_SELECTED = [
  'p.agent_id as parent_agent_id',
  'p.name as parent_name',
  'p.owner_id as parent_owner_id',
  'p.status as parent_status',
  'p.expires_at as parent_expires_at',
  'pg.id as parent_grant_id',
  'pg.connection_id as parent_grant_connection_id',
  'pg.scopes as parent_grant_scopes',
  'pg.constraints as parent_grant_constraints',
  'pg.require_approval as parent_grant_require_approval',
  'pg.expires_at as parent_grant_expires_at',
  'pb.cause as parent_breaker_cause',
  'pb.opened_at as parent_breaker_opened_at',
  'pb.open_until as parent_breaker_open_until',
  'pb.trial_at as parent_breaker_trial_at',
] as const;

/** A child is under the policy that its parent is under now. */
export const POLICY_OF_FAMILY = sql`case when a.parent_id is null then a.policy_id else p.policy_id end`;

/** What the breakers of a cause are counted per. */
export const keyOfBreaker = (platform: unknown) =>
  sql`case pb.cause when 'breaker_auth_failure' then ${addressOf('a.parent_id')} when 'breaker_upstream_failure' then ${platform} else '' end`;
