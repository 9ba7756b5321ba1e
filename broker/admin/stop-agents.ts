/** Owners stop all agents of their organisation at once, and resume them. */
import { type Changing, type ChangingOwner, recordInTurn } from '../audit/record-change.ts';
import type { AgentsStopped } from '../policy/agents-stopped.ts';
import { countActiveAgents, findAgentsStopped, putAgentsStopped } from '../store/agents-stopped.ts';
import { ChangeRefused } from './refused.ts';

/**
 * Stops all agents in force at the very next decision on every replica, also those that come later. Their own status stays what it
 * is, so that letting them go on gives back just what this took. What is under way is stopped by each replica (calls/access-watch.ts); what
 * waits, waits.
 *
 * @param detail the owner's own words, which the agents read
 * @throws ChangeRefused when they are stopped already; AuditUnavailable, and then nothing is changed
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
 * Lets them go on: agents that were suspended or revoked one by one stay so. Answers what was ended.
 *
 * @throws ChangeRefused when they are not stopped; AuditUnavailable, and then nothing is changed
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
