/** What a question about an agent that may be a child asks besides: of its parent, and in the same statement. */
import { sql } from 'kysely';
import { addressOf } from './facts-breakers.ts';

/** A child is under the policy that its parent is under now. */
export const POLICY_OF_FAMILY = sql`case when a.parent_id is null then a.policy_id else p.policy_id end`;

/** What the breakers of a cause are counted per. */
export const keyOfBreaker = (platform: unknown) =>
  sql`case pb.cause when 'breaker_auth_failure' then ${addressOf('a.parent_id')} when 'breaker_upstream_failure' then ${platform} else '' end`;
