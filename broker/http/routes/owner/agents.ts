/** Agents, as their owners see and stop them. */
import { z } from 'zod';
import { AGENT_STATUSES, type AgentStatus, HALT_CAUSES, type HaltCause } from '../../../policy/facts.ts';
import { findAgent, listShownAgents, moveAgent } from '../../../store/agents.ts';
import { listBreakersOpenAt } from '../../../store/breakers.ts';
import { forgetRefusals } from '../../../store/refusal-counts.ts';
import { type EndedRequest, revokeAgent } from '../../../store/revoke-agent.ts';
import type { AgentTable } from '../../../store/schema.ts';
import { text } from '../../../wire/action.ts';
import { CONTAINED, containedBy } from '../../contained.ts';
import { Refusal } from '../../errors.ts';
import { instant } from '../../instant.ts';
import { ownerChange } from '../../owner-change.ts';
import { json } from '../../reply.ts';
import { route } from '../../route.ts';

export const Agent = z
  .object({
    id: z.guid(),
    agent_id: z.string(),
    name: z.string(),
    owner_id: z.guid().describe('who answers for it'),
    status: z.enum(AGENT_STATUSES),
    status_since: z.iso.datetime().nullable(),
    status_cause: z.enum(HALT_CAUSES).nullable(),
    status_detail: z.string().nullable(),
    agent_type: z.enum(['key', 'child', 'mcp_client']).nullable(),
    policy_id: z
      .guid()
      .nullable()
      .describe(
        'the policy that it is under; without one nothing is allowed. A child has none: it is under its parent’s',
      ),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().nullable().describe('when its lifetime ends, as that of every child does'),
  })
  .meta({ id: 'Agent' });

const ListedAgent = Agent.extend({
  parent_agent_id: z.string().nullable().describe('of a child identity'),
  contained: z
    .enum(CONTAINED)
    .nullable()
    .describe('what else keeps it from acting, whatever its own status: its time is over, or its parent is stopped'),
  breakers: z
    .array(
      z.object({
        cause: z.enum(HALT_CAUSES),
        about: z.string().nullable().describe('the platform, or the client address, whose calls it refuses; null: all'),
        retry_after_seconds: z.int(),
      }),
    )
    .describe('what refuses calls for a while yet'),
}).meta({ id: 'ListedAgent' });

/** An agent as its owners see it. */
export const agentShown = (agent: AgentTable): z.output<typeof Agent> => ({
  id: agent.id,
  agent_id: agent.agent_id,
  name: agent.name,
  owner_id: agent.owner_id,
  status: agent.status,
  status_since: agent.status_since === null ? null : new Date(agent.status_since).toISOString(),
  status_cause: agent.status_cause,
  status_detail: agent.status_detail,
  agent_type: agent.agent_type,
  policy_id: agent.policy_id,
  created_at: new Date(agent.created_at).toISOString(),
  expires_at: instant(agent.expires_at),
});

const DAY_MS = 24 * 3600 * 1000;
/** A parent that is deleted. */
const GONE = { agent_id: null, status: 'revoked', expires_at: null } as const;

export const AgentId = z.string().describe('its uuid, or its agent id (`agt_…`)');

/** GET /owner/agents */
export const ownerAgents = route({
  method: 'GET',
  path: '/owner/agents',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.agents.list',
  summary: "The organisation's agents.",
  answers: {
    200: {
      description: 'All agents that are not deleted, oldest first; children for a day after their end.',
      schema: z.object({ agents: z.array(ListedAgent) }),
    },
  },
  errors: [],
  handle: async ({ services: { broker }, who }) => {
    const { db } = broker.store;
    const now = broker.clock();
    const [agents, open] = await Promise.all([
      listShownAgents(db, who.organisationId, now - DAY_MS),
      listBreakersOpenAt(db, who.organisationId, now),
    ]);
    const breakersOf = (id: string) =>
      open
        .filter((breaker) => breaker.agent_id === id)
        .map(({ cause, key, open_until }) => ({
          cause,
          about: key || null,
          retry_after_seconds: Math.ceil((open_until! - now) / 1000),
        }));
    const byId = new Map(agents.map((agent) => [agent.id, agent]));
    const listed = agents.map((agent) => {
      const parent = agent.parent_id === null ? undefined : (byId.get(agent.parent_id) ?? GONE);
      return {
        ...agentShown(agent),
        parent_agent_id: parent?.agent_id ?? null,
        contained: containedBy(agent, parent, now),
        breakers: breakersOf(agent.id),
      };
    });
    return json(200, { agents: listed });
  },
});

type Move = {
  verb: string;
  /** Of the event on record. */
  reason: string;
  from: readonly AgentStatus[];
  to: AgentStatus;
  cause: HaltCause | null;
  summary: string;
};

const MOVES: readonly Move[] = [
  {
    verb: 'suspend',
    reason: 'agent_suspended',
    from: ['active'],
    to: 'suspended',
    cause: 'owner_manual',
    summary: 'Stops an agent until it is resumed.',
  },
  {
    verb: 'resume',
    reason: 'agent_resumed',
    from: ['suspended'],
    to: 'active',
    cause: null,
    summary: 'Lets a suspended agent go on.',
  },
  {
    verb: 'revoke',
    reason: 'agent_revoked',
    from: ['active', 'suspended', 'pending', 'pending_bind'],
    to: 'revoked',
    cause: 'owner_manual',
    summary: 'Stops an agent for good.',
  },
  {
    verb: 'delete',
    reason: 'agent_deleted',
    from: ['revoked'],
    to: 'deleted',
    cause: 'owner_manual',
    summary:
      'Forgets a revoked agent: it is listed no more, and its tokens are those of nobody. What it did stays on record.',
  },
];

const Reason = z.strictObject({
  reason: text(500).optional().describe('shown to the agent as the detail of its halt'),
});

/** POST /owner/agents/{id}/suspend, /resume, /revoke and /delete: in force at the very next decision, on every replica. */
export const ownerAgentMoves = MOVES.map((move) =>
  route({
    method: 'POST',
    path: `/owner/agents/{id}/${move.verb}`,
    auth: 'owner',
    role: 'admin',
    capability: `owner.agents.${move.verb}`,
    summary: move.summary,
    params: { id: AgentId },
    body: Reason,
    answers: { 200: { description: 'The agent as it is now.', schema: Agent } },
    errors: ['invalid_request', 'not_found', 'conflict', 'audit_unavailable'],
    handle: async (context) => {
      const { services, who, params, body } = context;
      const agent = await findAgent(services.broker.store.db, who.organisationId, params.id!);
      if (!agent || agent.status === 'deleted') throw new Refusal('not_found', 'The organisation has no such agent.');
      const place = { organisationId: who.organisationId, id: agent.id };
      const detail = body.reason ?? null;
      const { broker, changes } = services;
      let ended: EndedRequest[] | undefined;
      const moved = await ownerChange(context, { reason: move.reason, detail, agent }, async (db) => {
        if (move.to === 'revoked')
          ended = await revokeAgent(db, agent, { from: move.from, cause: 'owner_manual', detail }, broker.clock());
        for (const ref of ended ?? []) await changes.announce(db, ref);
        const done =
          move.to === 'revoked' ? ended !== undefined : await moveAgent(db, place, { ...move, detail }, broker.clock());
        // Who looked at what was refused lets the agent begin again.
        if (done && move.to === 'active') await forgetRefusals(db, who.organisationId, agent.id);
        const now = (await findAgent(db, who.organisationId, agent.id))!;
        if (done) return now;
        throw new Refusal(
          'conflict',
          `This agent is ${now.status}; ${move.verb} takes one that is ${move.from.join(' or ')}.`,
        );
      });
      for (const ref of ended ?? []) changes.tell(ref);
      return json(200, agentShown(moved));
    },
  }),
);
