import { findAgent } from '../store/agents.ts';
import type { AgentTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { ChangeRefused } from './refused.ts';

/** An agent by its uuid or its agent id, for an owner. Throws ChangeRefused: there is none, or it was deleted. */
export async function loadAgent(db: Db, organisationId: string, id: string): Promise<AgentTable> {
  const agent = await findAgent(db, organisationId, id);
  if (!agent || agent.status === 'deleted') throw new ChangeRefused('not_found', 'The organisation has no such agent.');
  return agent;
}
