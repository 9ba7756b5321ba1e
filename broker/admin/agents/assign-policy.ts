/** Assigns a policy to an agent: in force from the next decision. */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, updateAgent } from '../../store/agents.ts';
import { findPolicy } from '../../store/policies.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { ChangeRefused } from '../refused.ts';
import { loadAgent } from './find-agent.ts';

/**
 * Returns the updated agent. Serialised with other changes of the organisation's agents, and with governance files.
 *
 * @param policy its id or its name
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function assignPolicy(
  services: Changing,
  by: ChangingOwner,
  { agentId, policy: idOrName }: { agentId: string; policy: string },
): Promise<AgentTable> {
  const { organisation_id: organisationId } = by.owner;
  const agent = await loadAgent(services.broker.store.db, organisationId, agentId);
  if (agent.parent_id !== null)
    throw new ChangeRefused(
      'conflict',
      'This is a child identity: the policy of its parent applies. Assign a policy to the parent.',
    );
  return await recordInTurn(services, by, { reason: 'policy_assigned', agent }, async (db, note) => {
    const policy = await findPolicy(db, organisationId, idOrName);
    if (!policy) throw new ChangeRefused('invalid_request', `policy: the organisation has none of this id or name.`);
    const now = present(await findAgent(db, organisationId, agent.id), 'agent');
    if (now.status === 'revoked')
      throw new ChangeRefused('conflict', 'This agent is revoked; its policy cannot be changed.');
    await updateAgent(db, organisationId, agent.id, { policy_id: policy.id });
    note({ policy: { id: policy.id, name: policy.name, version: policy.version }, before: now.policy_id });
    return { ...now, policy_id: policy.id };
  });
}
