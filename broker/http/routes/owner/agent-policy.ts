import { z } from 'zod';
import { findAgent, updateAgent } from '../../../store/agents.ts';
import { lockOrganisation } from '../../../store/governance.ts';
import { findPolicy } from '../../../store/policies.ts';
import { Refusal } from '../../errors.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { Agent, AgentId, agentShown } from './agents.ts';

/** POST /owner/agents/{id}/policy: in force at the very next decision. */
export const assignPolicy = route({
  method: 'POST',
  path: '/owner/agents/{id}/policy',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.agents.policy',
  summary: 'Puts an agent under a policy.',
  params: { id: AgentId },
  body: z.strictObject({ policy: z.string().min(1).max(64).describe('the id of the policy, or its name') }),
  answers: { 200: { description: 'The agent as it is now.', schema: Agent } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who, body } = context;
    const { organisationId } = who;
    const agent = await findAgent(services.broker.store.db, organisationId, context.params.id!);
    if (!agent || agent.status === 'deleted') throw new Refusal('not_found', 'The organisation has no such agent.');
    if (agent.parent_id !== null)
      throw new Refusal(
        'conflict',
        'This is a child identity: it is under the policy of its parent. Assign that one another.',
      );
    const assigned = await ownerChange(context, { reason: 'policy_assigned', agent }, async (db, note) => {
      await lockOrganisation(db, organisationId);
      const policy = await findPolicy(db, organisationId, body.policy);
      if (!policy) throw new Refusal('invalid_request', `policy: the organisation has none of this id or name.`);
      const now = (await findAgent(db, organisationId, agent.id))!;
      if (now.status === 'revoked')
        throw new Refusal('conflict', 'This agent is stopped for good; no policy changes that.');
      await updateAgent(db, organisationId, agent.id, { policy_id: policy.id });
      note({ policy: { id: policy.id, name: policy.name, version: policy.version }, before: now.policy_id });
      return { ...now, policy_id: policy.id };
    });
    return json(200, agentShown(assigned));
  },
});
