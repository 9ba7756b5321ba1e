/** Sets an agent's labels: in force from the next decision, for conditions that read labels. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { inOrder, storedLabels } from '../../policy/labels.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, listLabels, updateAgent } from '../../store/agents.ts';
import type { Db } from '../../store/store.ts';
import { readLabels } from '../../store/stored-terms.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { ChangeRefused } from '../refused.ts';
import { loadAgent } from './find-agent.ts';

/**
 * Replaces the labels of an agent. Setting the same labels again is no change.
 *
 * @returns the updated agent
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function labelAgent(
  services: Changing,
  by: ChangingOwner,
  { agentId, labels: given }: { agentId: string; labels: readonly string[] },
): Promise<AgentTable> {
  const { organisation_id: organisationId } = by.owner;
  const agent = await loadAgent(services.broker.store.db, organisationId, agentId);
  if (agent.parent_id !== null)
    throw new ChangeRefused('conflict', 'This is a child identity: it has the labels of its parent. Label that one.');
  const labels = storedLabels(given);
  if (agent.labels === labels) return agent;
  return await recordInTurn(services, by, { reason: 'agent_labelled', agent }, async (db, note) => {
    const now = present(await findAgent(db, organisationId, agent.id), 'agent');
    await updateAgent(db, organisationId, agent.id, { labels });
    note({ labels: inOrder(given), before: readLabels(now.labels, agent.id) });
    return { ...now, labels };
  });
}

/** Lists the labels of an organisation's agents in alphabetical order, with the number of agents for each; deleted agents are not counted. */
export async function countLabels(db: Db, organisationId: string): Promise<{ label: string; agents: number }[]> {
  const counts = new Map<string, number>();
  for (const { id, labels, agents } of await listLabels(db, organisationId))
    for (const label of readLabels(labels, id)) counts.set(label, (counts.get(label) ?? 0) + Number(agents));
  return [...counts].map(([label, agents]) => ({ label, agents })).toSorted((a, b) => (a.label < b.label ? -1 : 1));
}
