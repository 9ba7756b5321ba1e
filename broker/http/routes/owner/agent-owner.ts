/** Hands agents over to another owner, and sets the labels by which agents are found. */
import { z } from 'zod';
import { handOver } from '../../../admin/agents/hand-over.ts';
import { countLabels, labelAgent as label } from '../../../admin/agents/label-agent.ts';
import { Labels } from '../../../policy/labels.ts';
import { Agent, AgentId, agentShown } from '../../owned/agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { uuid } from '../../query.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

/** POST /owner/hand-over */
export const handOverAgents = route({
  method: 'POST',
  path: '/owner/hand-over',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.agents.hand_over',
  summary: 'Moves agents from one owner to another, in one transaction.',
  body: z.strictObject({
    from: uuid('the id of the owner who has them'),
    to: uuid('the id of the owner who gets them'),
    agents: z.array(AgentId.max(64)).min(1).max(1000).optional().describe('which; without it all that are not revoked'),
  }),
  answers: {
    200: {
      description: 'They are of the other owner, with their children.',
      schema: z.object({
        handed_over: z.int(),
        in_governance_file: z
          .int()
          .describe('how many of them a governance file decides about: its next apply gives them to whom it says'),
      }),
    },
  },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { given, inFile } = await handOver(context.services, changingOwner(context), context.body);
    return json(200, { handed_over: given.length, in_governance_file: inFile });
  },
});

/** POST /owner/agents/{id}/labels: in force from the next decision. */
export const labelAgent = route({
  method: 'POST',
  path: '/owner/agents/{id}/labels',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.agents.labels',
  summary: 'Replaces the labels of an agent.',
  params: { id: AgentId },
  body: z.strictObject({ labels: Labels }),
  answers: { 200: { description: 'The agent as it is now.', schema: Agent } },
  errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, params, body } = context;
    const command = { agentId: params.id, labels: body.labels };
    return json(200, agentShown(await label(services, changingOwner(context), command)));
  },
});

/** GET /owner/agent-labels */
export const agentLabels = route({
  method: 'GET',
  path: '/owner/agent-labels',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.agents.label_list',
  summary: 'The labels of the agents, with how many agents have each.',
  answers: {
    200: {
      description: 'In the order of the alphabet.',
      schema: z.object({ labels: z.array(z.object({ label: z.string(), agents: z.int() })) }),
    },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) =>
    json(200, { labels: await countLabels(broker.store.db, who.organisationId) }),
});
