/** Public data of an agent whose organisation publishes identity documents. */

import { statusWhenStopped } from '../policy/agents-stopped.ts';
import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';

export type PublishedIdentity = Pick<
  AgentTable,
  'agent_id' | 'agent_type' | 'status' | 'expires_at' | 'public_key_pem' | 'key_fingerprint'
> & { parent_agent_id: string | null; workload_id: string | null };

/**
 * Returns the agent with this `agt_` id; undefined when there is none, when it is still pending, or when its organisation does not publish.
 * The same statement covers all cases, so that timing does not tell them apart.
 * `status` is the effective one: an active agent is returned as suspended while all agents of the organisation are stopped.
 */
export async function findPublishedIdentity(db: Db, agentId: string): Promise<PublishedIdentity | undefined> {
  const found = await db
    .selectFrom('agents as agent')
    .innerJoin('organisations as organisation', 'organisation.id', 'agent.organisation_id')
    .leftJoin('agents as parent', (join) =>
      join.onRef('parent.organisation_id', '=', 'agent.organisation_id').onRef('parent.id', '=', 'agent.parent_id'),
    )
    .leftJoin('workloads as workload', (join) =>
      join.onRef('workload.organisation_id', '=', 'agent.organisation_id').onRef('workload.agent_id', '=', 'agent.id'),
    )
    .select([
      'agent.agent_id',
      'agent.agent_type',
      'agent.status',
      'agent.expires_at',
      'agent.public_key_pem',
      'agent.key_fingerprint',
      'parent.agent_id as parent_agent_id',
      'workload.id as workload_id',
      'organisation.agents_stopped',
    ])
    .where('agent.agent_id', '=', agentId)
    .where('agent.status', 'not in', ['pending', 'pending_bind'])
    .where('organisation.publish_identity_documents', '=', 1)
    .executeTakeFirst();
  if (!found) return undefined;
  const { agents_stopped: stopped, ...identity } = found;
  return stopped === null ? identity : { ...identity, status: statusWhenStopped(identity.status) };
}
