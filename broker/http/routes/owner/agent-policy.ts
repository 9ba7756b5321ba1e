import { z } from 'zod';
import { assignPolicy as assign } from '../../../admin/agents/assign-policy.ts';
import { Agent, AgentId, agentShown } from '../../owned/agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** POST /owner/agents/{id}/policy: in force from the next decision. */
export const assignPolicy = route({
  method: 'POST',
  path: '/owner/agents/{id}/policy',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.agents.policy',
  summary: 'Assigns a policy to an agent.',
  params: { id: AgentId },
  body: z.strictObject({ policy: z.string().min(1).max(64).describe('the id of the policy, or its name') }),
  answers: { 200: { description: 'The agent as it is now.', schema: Agent } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const command = { agentId: params.id, policy: body.policy };
    return json(200, agentShown(await assign(services, changingOwner(context), command)));
  },
});
