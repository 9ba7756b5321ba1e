/** Lists an organisation's agents for its owners, by pages, and reads one agent with all details. */
import type { Broker } from '../../broker.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { type AgentActivity, activityOf } from '../../store/agent-activity.ts';
import { keyReplacedAt } from '../../store/agent-keys.ts';
import {
  type AgentCursor,
  type AgentPage,
  countAgents,
  findAgents,
  INDEXED_ORDERS,
  MAX_AGENTS_COUNTED,
  pageOfAgents,
} from '../../store/agent-pages.ts';
import { findAgentsStopped } from '../../store/agents-stopped.ts';
import { listBreakersOpenAt } from '../../store/breakers.ts';
import { findOwner } from '../../store/organisations.ts';
import { findPolicy } from '../../store/policies.ts';
import type { AgentTable, WorkloadTable } from '../../store/tables/agents.ts';
import { findWorkloadOf } from '../../store/workloads.ts';
import { ChangeRefused } from '../refused.ts';
import { type AgentEarlier, type AgentLimit, readAgentHistory } from './agent-history.ts';
import { loadAgent } from './find-agent.ts';
import { DAY_MS, type ListedAgent } from './list-agents.ts';

/** `activity`: of the last 24 hours, and what is pending now. */
export type GlancedAgent = ListedAgent & { activity: AgentActivity };

export type SoughtAgents = Omit<AgentPage, 'endedBy'>;
export type FoundAgents = { agents: GlancedAgent[]; end: AgentCursor | null; total: number };

type Reading = Pick<Broker, 'store' | 'keysRestoredAt'>;

/**
 * Returns a page of the agents that are not deleted; children until a day after their end. `filter.parent` may be an agent id, too.
 *
 * @throws ChangeRefused when there is no agent `filter.parent`, or there are too many agents for the requested order
 */
export async function findAgentPage(
  broker: Reading,
  organisationId: string,
  sought: SoughtAgents,
  now: Instant,
): Promise<FoundAgents> {
  const { db } = broker.store;
  const { parent } = sought.filter;
  const filter = {
    ...sought.filter,
    ...(parent !== undefined && { parent: (await loadAgent(db, organisationId, parent)).id }),
  };
  const page = { ...sought, filter, endedBy: now - DAY_MS };
  const counted = () => countAgents(db, organisationId, page);
  if (!INDEXED_ORDERS.has(page.order) && (await counted()) === MAX_AGENTS_COUNTED)
    throw new ChangeRefused(
      'invalid_request',
      `sort: ${MAX_AGENTS_COUNTED} agents or more can be ordered by ${[...INDEXED_ORDERS].join(' or ')} only. Narrow them down first.`,
    );
  const { agents, end } = await pageOfAgents(db, organisationId, page);
  // Skips counting when this page shows all matches: filtering a million agents is slow enough.
  const total = end === null && page.after === undefined ? agents.length : await counted();
  return { agents: await glance(broker, organisationId, agents, now), end, total };
}

export type WholeAgent = GlancedAgent & {
  owner_email: string | null;
  policy_name: string | null;
  /** When its key replaced an earlier one; null: never. */
  keyReplacedAt: Instant | null;
  workload: WorkloadTable | undefined;
  limits: AgentLimit[];
  /** Rules that currently apply because of earlier calls. */
  earlier: AgentEarlier[];
};

/** Reads an agent by its uuid or its agent id. Throws ChangeRefused when there is none, or it was deleted. */
export async function readAgent(
  broker: Reading,
  organisationId: string,
  id: string,
  now: Instant,
): Promise<WholeAgent> {
  const { db } = broker.store;
  const agent = await loadAgent(db, organisationId, id);
  const [glanced, owner, policy, replacedAt, workload] = await Promise.all([
    glance(broker, organisationId, [agent], now),
    findOwner(db, agent.owner_id),
    agent.policy_id === null ? undefined : findPolicy(db, organisationId, agent.policy_id),
    keyReplacedAt(db, organisationId, agent.id),
    findWorkloadOf(db, { organisation_id: organisationId, agent_id: agent.id }),
  ]);
  const one = present(glanced[0], 'agent');
  return {
    ...one,
    ...(await readAgentHistory(db, one.parent ?? agent, now, broker.keysRestoredAt)),
    owner_email: owner?.email ?? null,
    policy_name: policy?.name ?? null,
    keyReplacedAt: replacedAt,
    workload,
  };
}

async function glance(
  { store: { db } }: Reading,
  organisationId: string,
  agents: readonly AgentTable[],
  now: Instant,
): Promise<GlancedAgent[]> {
  const ids = agents.map(({ id }) => id);
  const [activity, open, parents, stop] = await Promise.all([
    activityOf(db, organisationId, ids, { since: now - DAY_MS, now }),
    listBreakersOpenAt(db, organisationId, now),
    findAgents(db, organisationId, [...new Set(agents.flatMap(({ parent_id }) => parent_id ?? []))]),
    findAgentsStopped(db, organisationId),
  ]);
  const breakers = Map.groupBy(open, (breaker) => breaker.agent_id);
  const byId = new Map(activity.map((one) => [one.agent_id, one]));
  return agents.map((agent) => ({
    agent,
    parent: parents.find(({ id, status }) => id === agent.parent_id && status !== 'deleted'),
    breakers: breakers.get(agent.id) ?? [],
    stopped: stop !== undefined,
    activity: present(byId.get(agent.id), 'activity of an agent'),
  }));
}
