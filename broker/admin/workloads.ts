/** Workloads of agents: by whose tokens an agent is authenticated that keeps no key of its own. */
import { type Changing, type ChangingOwner, recordInTurn } from '../audit/record-change.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { present } from '../policy/present.ts';
import { findAgent } from '../store/agents.ts';
import type { WorkloadTable } from '../store/tables/agents.ts';
import { deleteWorkload, findWorkloadOf, putWorkload } from '../store/workloads.ts';
import { loadAgent } from './find-agent.ts';
import { ChangeRefused } from './refused.ts';

export type SetWorkload = Pick<WorkloadTable, 'issuer' | 'subject' | 'jwks_uri'>;
export type ReadWorkload = WorkloadTable;

/**
 * From now on the agent is authenticated by tokens of this subject, too, and by those of no other workload. Answers the agent's id (`agt_…`) with it.
 * Throws ChangeRefused; AuditUnavailable, and then nothing is changed.
 */
export async function setWorkload(
  services: Changing,
  by: ChangingOwner,
  id: string,
  meant: SetWorkload,
): Promise<{ agentId: string; workload: ReadWorkload }> {
  const { store, clock } = services.broker;
  const { organisation_id } = by.owner;
  const agent = await loadAgent(store.db, organisation_id, id);
  if (agent.parent_id !== null || agent.agent_type === 'mcp_client')
    throw new ChangeRefused(
      'conflict',
      'The tokens of a child, and of an MCP client, are the broker’s: it has no workload.',
    );
  const change = { reason: 'workload_set', agent, detail: meant.subject };
  const workload = await recordInTurn(services, by, change, async (db, note) => {
    const now = present(await findAgent(db, organisation_id, agent.id), 'agent');
    if (now.status === 'revoked' || now.status === 'deleted')
      throw new ChangeRefused('conflict', 'This agent is revoked: nothing is taken for it any more.');
    if (now.status === 'pending' || now.status === 'pending_bind')
      throw new ChangeRefused('conflict', 'This agent is not active yet: it has a workload once it is.');
    const made = {
      ...meant,
      organisation_id,
      agent_id: agent.id,
      id: uuidv4(),
      created_at: clock(),
      last_used_at: null,
    };
    await putWorkload(db, made);
    note({ workload: made.id, issuer: made.issuer, subject: made.subject });
    return made;
  });
  return { agentId: agent.agent_id, workload };
}

/** The agent is authenticated by its key alone. Throws ChangeRefused; AuditUnavailable, and then nothing is changed. */
export async function removeWorkload(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  const { db } = services.broker.store;
  const agent = await loadAgent(db, by.owner.organisation_id, id);
  const ref = { organisation_id: agent.organisation_id, agent_id: agent.id };
  await recordInTurn(services, by, { reason: 'workload_removed', agent }, async (tx, note) => {
    const found = await findWorkloadOf(tx, ref);
    if (!found) throw new ChangeRefused('not_found', 'This agent has no workload.');
    await deleteWorkload(tx, ref);
    note({ workload: found.id });
  });
}
