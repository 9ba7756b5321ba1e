/** Workloads of agents: the token issuer by which an agent without a key of its own is authenticated. */
import { z } from 'zod';
import { createWithWorkload, removeWorkload, setWorkload } from '../../../admin/agents/workloads.ts';
import { Granted } from '../../granted-scopes.ts';
import { Agent, AgentId, agentShown } from '../../owned/agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { AgentName } from '../../registration-request.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { NewWorkload, WorkloadShown, workloadShown } from '../../workload.ts';

/** POST /owner/agents: the creating admin becomes the agent's owner. Agents with a key of their own use an invite or a registration instead. */
export const createOwnerAgent = route({
  method: 'POST',
  path: '/owner/agents',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.agents.create',
  summary: 'Creates an agent without a key, which authenticates with tokens of a workload.',
  body: z.strictObject({
    name: AgentName,
    policy: z.string().min(1).max(64).optional().describe('its id or its name; the default one when left out'),
    grants: Granted.optional().describe('what it may do; nothing when left out'),
    workload: NewWorkload,
  }),
  answers: {
    200: { description: 'The agent.', schema: Agent.extend({ workload: WorkloadShown }).meta({ id: 'NewAgent' }) },
  },
  errors: ['invalid_request', 'not_on_plan', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, body } = context;
    const { name, policy, grants = [] } = body;
    const meant = { ...body.workload, jwks_uri: body.workload.jwks_uri ?? null };
    const made = { name, grants, ...(policy !== undefined && { policy }) };
    const { agent, workload } = await createWithWorkload(services, changingOwner(context), made, meant);
    return json(200, {
      ...agentShown(agent),
      workload: workloadShown(services.broker.baseUrl, agent.agent_id, workload),
    });
  },
});

const PATH = '/owner/agents/{id}/workload';

/** POST /owner/agents/{id}/workload: replaces an earlier one, in force from the next request. */
export const setOwnerWorkload = route({
  method: 'POST',
  path: PATH,
  auth: 'owner',
  role: 'admin',
  capability: 'owner.workloads.set',
  summary: 'Accepts tokens of a workload for an agent, besides those that it signs.',
  params: { id: AgentId },
  body: NewWorkload,
  answers: { 200: { description: 'The workload, with the audience that its tokens need.', schema: WorkloadShown } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const meant = { ...body, jwks_uri: body.jwks_uri ?? null };
    const { agentId, workload } = await setWorkload(services, changingOwner(context), params.id, meant);
    return json(200, workloadShown(services.broker.baseUrl, agentId, workload));
  },
});

/** DELETE /owner/agents/{id}/workload */
export const removeOwnerWorkload = route({
  method: 'DELETE',
  path: PATH,
  auth: 'owner',
  role: 'admin',
  capability: 'owner.workloads.remove',
  summary: 'Stops accepting tokens of a workload for an agent: only tokens that it signs are accepted.',
  params: { id: AgentId },
  answers: {
    200: {
      description: 'The next request with one is refused, and children of the agent have ended.',
      schema: z.object({ removed: z.literal(true) }),
    },
  },
  errors: ['not_found', 'audit_unavailable'],
  handle: async (context) => {
    await removeWorkload(context.services, changingOwner(context), context.params.id);
    return json(200, { removed: true });
  },
});
