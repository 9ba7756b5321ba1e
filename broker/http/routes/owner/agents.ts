/** Agents, for owners: view and stop. */
import { z } from 'zod';
import { findAgentPage, readAgent } from '../../../admin/agents/agent-pages.ts';
import { type AgentVerb, changeAgentStatus } from '../../../admin/agents/change-agent-status.ts';
import { listAgents } from '../../../admin/agents/list-agents.ts';
import { text } from '../../../wire/action.ts';
import {
  AGENTS_SOUGHT,
  AgentsTotal,
  agentsSought,
  cursorText,
  GlancedAgentShown,
  glancedAgentShown,
  WholeAgentShown,
  wholeAgentShown,
} from '../../agent-glance.ts';
import { Agent, AgentId, agentShown, listedAgentShown } from '../../owned/agent.ts';
import { changingOwner } from '../../owner-change.ts';
import { json, longJson } from '../../reply.ts';
import { route } from '../../route.ts';

/** GET /owner/agents */
export const ownerAgents = route({
  method: 'GET',
  path: '/owner/agents',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.agents.list',
  summary: "The organisation's agents: all, or with any parameter a filtered page.",
  query: z.object(AGENTS_SOUGHT),
  answers: {
    200: {
      description:
        'Without parameters all agents that are not deleted, oldest first; with any of them a page. Children for a day after their end.',
      schema: z.object({
        agents: z.array(GlancedAgentShown.partial({ activity: true })).describe('on pages with their `activity`'),
        next: z.string().nullable().optional().describe('for `cursor`; null: this is the last page'),
        total: AgentsTotal.optional(),
      }),
    },
  },
  errors: ['invalid_request', 'not_found'],
  handle: async ({ services: { broker }, who, query }) => {
    const now = broker.clock();
    const sought = agentsSought(query);
    if (sought === undefined) {
      const agents = await listAgents(broker, who.organisationId, now);
      return await longJson(200, { agents: agents.map((one) => listedAgentShown(one, now)) });
    }
    const { agents, end, total } = await findAgentPage(broker, who.organisationId, sought, now);
    return json(200, {
      agents: agents.map((one) => glancedAgentShown(one, now)),
      next: end && cursorText(end, query.sort),
      total,
    });
  },
});

/** GET /owner/agents/{id} */
export const ownerAgent = route({
  method: 'GET',
  path: '/owner/agents/{id}',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.agents.read',
  summary: 'One agent, with its activity of the last 24 hours and its pending decisions.',
  params: { id: AgentId },
  answers: { 200: { description: 'The agent.', schema: WholeAgentShown } },
  errors: ['not_found'],
  handle: async ({ services: { broker }, who, params }) => {
    const now = broker.clock();
    return json(200, wholeAgentShown(broker.baseUrl, await readAgent(broker, who.organisationId, params.id, now), now));
  },
});

const VERBS: readonly { verb: AgentVerb; summary: string }[] = [
  { verb: 'suspend', summary: 'Suspends an agent until it is resumed.' },
  { verb: 'resume', summary: 'Resumes a suspended agent.' },
  { verb: 'revoke', summary: 'Revokes an agent, permanently.' },
  {
    verb: 'delete',
    summary: 'Deletes a revoked agent: it is no longer listed, and its tokens are unknown. Its audit rows stay.',
  },
];

const Reason = z.strictObject({
  reason: text(500).optional().describe('shown to the agent as the detail of its halt'),
});

/** POST /owner/agents/{id}/suspend, /resume, /revoke and /delete: in force from the next decision, on every replica. */
export const ownerAgentMoves = VERBS.map(({ verb, summary }) =>
  route({
    method: 'POST',
    path: `/owner/agents/{id}/${verb}`,
    auth: 'owner',
    role: 'admin',
    capability: `owner.agents.${verb}`,
    summary,
    params: { id: AgentId },
    body: Reason,
    answers: { 200: { description: 'The agent as it is now.', schema: Agent } },
    errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
    handle: async (context) => {
      const { services, params, body } = context;
      const command = { id: params.id, verb, detail: body.reason ?? null };
      return json(200, agentShown(await changeAgentStatus(services, changingOwner(context), command)));
    },
  }),
);
