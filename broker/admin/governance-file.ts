/** Whether agents are managed by a governance file that somebody applied. */
import { listGovernanceApplies } from '../store/governance-applies.ts';
import type { Db } from '../store/store.ts';
import type { AgentTable } from '../store/tables/agents.ts';

/** The detail of the apply by which the broker creates the sandbox at its first start. */
export const SANDBOX_APPLY = 'the sandbox';

/**
 * Returns those of the agents that a governance file manages: its next apply undoes what owners change. The sandbox is created in the same way but
 * without a file, so its agent counts only once somebody has applied one.
 */
export async function inGovernanceFile<Agent extends Pick<AgentTable, 'origin'>>(
  db: Db,
  organisationId: string,
  agents: readonly Agent[],
): Promise<Agent[]> {
  const managed = agents.filter(({ origin }) => origin === 'governance');
  if (managed.length === 0) return managed;
  const [newest] = await listGovernanceApplies(db, organisationId);
  return newest?.how === 'start' && newest.detail === SANDBOX_APPLY ? [] : managed;
}
