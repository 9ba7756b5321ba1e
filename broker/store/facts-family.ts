/** Facts of the parent, for agents that may be children, in the same query. */
import { sql } from 'kysely';
import { addressOf } from './facts-breakers.ts';

/** A child uses its parent's current policy. */
export const POLICY_OF_FAMILY = sql`case when a.parent_id is null then a.policy_id else p.policy_id end`;

/** The key under which a breaker of this cause counts. */
export const keyOfBreaker = (platform: unknown) =>
  sql`case pb.cause when 'breaker_auth_failure' then ${addressOf('a.parent_id')} when 'breaker_upstream_failure' then ${platform} else '' end`;
