/** The owners' view of agents. */
import { z } from 'zod';
import type { ListedAgent as Listed } from '../../admin/agents/list-agents.ts';
import { AGENT_STATUSES, HALT_CAUSES, type Instant } from '../../policy/facts.ts';
import { readLabels } from '../../store/stored-terms.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { instant } from '../reply.ts';

/** Why an agent cannot act although its own status is active: its expiry, its parent, or a stop of all agents. */
const CONTAINED = ['expired', 'parent_suspended', 'parent_revoked', 'parent_expired', 'all_stopped'] as const;

type AgentLifetime = Pick<AgentTable, 'status' | 'expires_at'>;

/** Returns the first such reason, or null. `parent`: undefined for an agent without one. `stopped`: whether all agents are stopped. */
function containedBy(
  agent: AgentLifetime,
  parent: AgentLifetime | undefined,
  stopped: boolean,
  now: Instant,
): (typeof CONTAINED)[number] | null {
  if (isExpired(agent, now)) return 'expired';
  if (parent === undefined) return stopped ? 'all_stopped' : null;
  if (isExpired(parent, now)) return 'parent_expired';
  if (parent.status === 'active') return stopped ? 'all_stopped' : null;
  return parent.status === 'suspended' ? 'parent_suspended' : 'parent_revoked';
}

const isExpired = ({ expires_at }: AgentLifetime, now: Instant): boolean => expires_at !== null && expires_at <= now;

export const Agent = z
  .object({
    id: z.guid(),
    agent_id: z.string(),
    name: z.string(),
    owner_id: z.guid().describe('the owner who is responsible for it'),
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
    key_fingerprint: z
      .string()
      .nullable()
      .describe(
        'of the public key that its tokens are verified with; null: it has none yet, or its tokens are the broker’s',
      ),
    labels: z.array(z.string()).describe('of a child none: it has those of its parent'),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime().nullable().describe('when its lifetime ends, as that of every child does'),
  })
  .meta({ id: 'Agent' });

export const ListedAgent = Agent.extend({
  parent_agent_id: z.string().nullable().describe('of a child identity'),
  contained: z
    .enum(CONTAINED)
    .nullable()
    .describe(
      'another reason why it cannot act, independent of its status: it expired, its parent is stopped, or all agents are stopped',
    ),
  breakers: z
    .array(
      z.object({
        cause: z.enum(HALT_CAUSES),
        about: z.string().nullable().describe('the platform, or the client address, whose calls it refuses; null: all'),
        retry_after_seconds: z.int(),
      }),
    )
    .describe('circuit breakers that refuse calls at the moment'),
}).meta({ id: 'ListedAgent' });

/** Builds the view of an agent. */
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
  key_fingerprint: agent.key_fingerprint,
  labels: readLabels(agent.labels, agent.id),
  created_at: new Date(agent.created_at).toISOString(),
  expires_at: instant(agent.expires_at),
});

/** Stands for a parent that was deleted. */
const GONE = { agent_id: null, status: 'revoked', expires_at: null } as const;

/** Builds the view with the other reasons that keep the agent from acting. */
export function listedAgentShown(
  { agent, parent, breakers, stopped }: Listed,
  now: Instant,
): z.output<typeof ListedAgent> {
  const shownParent = agent.parent_id === null ? undefined : (parent ?? GONE);
  return {
    ...agentShown(agent),
    parent_agent_id: shownParent?.agent_id ?? null,
    contained: containedBy(agent, shownParent, stopped, now),
    breakers: breakers.map(({ cause, key, open_until }) => ({
      cause,
      about: key || null,
      retry_after_seconds: Math.ceil(((open_until ?? now) - now) / 1000),
    })),
  };
}

export const AgentId = z.string().describe('its uuid, or its agent id (`agt_…`)');
