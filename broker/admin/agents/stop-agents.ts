/** Stops all agents of an organisation together, and resumes them. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { AgentsStopped } from '../../policy/agents-stopped.ts';
import { countActiveAgents, findAgentsStopped, putAgentsStopped } from '../../store/agents-stopped.ts';
import { ChangeRefused } from '../refused.ts';

/**
 * Stops all agents, including future ones, in force from the next decision on every replica. Their own status is not changed, so that resuming
 * restores exactly the state before. Calls in flight are stopped by each replica (calls/access-watch.ts); pending approvals stay pending.
 *
 * @param detail the owner's own text, which the agents read
 * @throws ChangeRefused when they are stopped already; or AuditUnavailable: then nothing is changed
 */
export async function stopAllAgents(
  services: Changing,
  by: ChangingOwner,
  { detail }: { detail: string | null },
): Promise<AgentsStopped> {
  const { id, organisation_id: organisationId } = by.owner;
  return await recordInTurn(services, by, { reason: 'all_agents_stopped', detail }, async (tx, note) => {
    const agents = await countActiveAgents(tx, organisationId);
    const stopped = { at: services.broker.clock(), by: id, detail, agents };
    if (!(await putAgentsStopped(tx, organisationId, stopped)))
      throw new ChangeRefused('conflict', 'All agents are stopped already.');
    note({ agents });
    return stopped;
  });
}

/**
 * Resumes the agents; those that were suspended or revoked one by one stay so. Returns the stop that was ended.
 *
 * @throws ChangeRefused when they are not stopped; or AuditUnavailable: then nothing is changed
 */
export async function resumeAllAgents(
  services: Changing,
  by: ChangingOwner,
  { detail }: { detail: string | null },
): Promise<AgentsStopped> {
  const { organisation_id: organisationId } = by.owner;
  return await recordInTurn(services, by, { reason: 'all_agents_resumed', detail }, async (tx, note) => {
    const stopped = await findAgentsStopped(tx, organisationId);
    if (!stopped || !(await putAgentsStopped(tx, organisationId, undefined)))
      throw new ChangeRefused('conflict', 'The agents are not stopped as a whole.');
    note({ agents: await countActiveAgents(tx, organisationId) });
    return stopped;
  });
}
