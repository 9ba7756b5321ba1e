/** Lists an organisation's agents for its owners. */
import type { Broker } from '../../broker.ts';
import type { Instant } from '../../policy/facts.ts';
import { listShownAgents } from '../../store/agents.ts';
import { findAgentsStopped } from '../../store/agents-stopped.ts';
import { listBreakersOpenAt } from '../../store/breakers.ts';
import type { AgentTable } from '../../store/tables/agents.ts';

/** How long children are listed after their end, and the period in which calls are counted. */
export const DAY_MS = 24 * 3600 * 1000;

type OpenBreaker = Awaited<ReturnType<typeof listBreakersOpenAt>>[number];

/** `parent`: present for a child whose parent was not deleted. */
export type ListedAgent = {
  agent: AgentTable;
  parent: AgentTable | undefined;
  breakers: readonly OpenBreaker[];
  /** Whether all agents of the organisation are stopped. */
  stopped: boolean;
};

/** Lists all agents that are not deleted, oldest first; children for a day after their end. With the breakers that are open at `now`. */
export async function listAgents(
  { store: { db } }: Pick<Broker, 'store'>,
  organisationId: string,
  now: Instant,
): Promise<ListedAgent[]> {
  const [agents, open, stop] = await Promise.all([
    listShownAgents(db, organisationId, now - DAY_MS),
    listBreakersOpenAt(db, organisationId, now),
    findAgentsStopped(db, organisationId),
  ]);
  const byId = new Map(agents.map((agent) => [agent.id, agent]));
  const breakers = Map.groupBy(open, (breaker) => breaker.agent_id);
  return agents.map((agent) => ({
    agent,
    parent: agent.parent_id === null ? undefined : byId.get(agent.parent_id),
    breakers: breakers.get(agent.id) ?? [],
    stopped: stop !== undefined,
  }));
}
