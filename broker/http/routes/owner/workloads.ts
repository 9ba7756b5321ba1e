/** Workloads of agents: by whose tokens an agent is authenticated that keeps no key of its own. */
import { z } from 'zod';
import { removeWorkload, setWorkload } from '../../../admin/workloads.ts';
import { AgentId } from '../../owned-agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';
import { NewWorkload, WorkloadShown, workloadShown } from '../../workload.ts';

const PATH = '/owner/agents/{id}/workload';

/** POST /owner/agents/{id}/workload: in force at the very next request, in place of one of before. */
export const setOwnerWorkload = route({
  method: 'POST',
  path: PATH,
  auth: 'owner',
  role: 'admin',
  capability: 'owner.workloads.set',
  summary: 'Has tokens of a workload taken for an agent, besides those that it signs.',
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
  summary: 'Takes tokens of a workload for an agent no more: what it signs alone.',
  params: { id: AgentId },
  answers: {
    200: { description: 'The next request with one is refused.', schema: z.object({ removed: z.literal(true) }) },
  },
  errors: ['not_found', 'audit_unavailable'],
  handle: async (context) => {
    await removeWorkload(context.services, changingOwner(context), context.params.id);
    return json(200, { removed: true });
  },
});
