import { findAgent } from '../../store/agents.ts';
import type { Db } from '../../store/store.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { ChangeRefused } from '../refused.ts';

/** Loads an agent by its uuid or its agent id. Throws ChangeRefused when there is none, or it was deleted. */
export async function loadAgent(db: Db, organisationId: string, id: string): Promise<AgentTable> {
  const agent = await findAgent(db, organisationId, id);
  if (!agent || agent.status === 'deleted') throw new ChangeRefused('not_found', 'The organisation has no such agent.');
  return agent;
}

const MAX_NAMED = 12;

/** Lists agents in words: `triage (agt_…), sales (agt_…) and 3 more`. */
export function agentsNamed(agents: readonly Pick<AgentTable, 'name' | 'agent_id'>[]): string {
  const names = agents.slice(0, MAX_NAMED).map(({ name, agent_id }) => `${name} (${agent_id})`);
  const more = agents.length > MAX_NAMED ? ` and ${agents.length - MAX_NAMED} more` : '';
  return names.join(', ') + more;
}
