/** Plans a new agent of a governance file. */

import { agentRow, newIds } from '../admin/agents/new-agent.ts';
import type { AgentEntry } from '../config-file/schema.ts';
import { inOrder, storedLabels } from '../policy/labels.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import type { AgentKey } from './plan-keys.ts';
import { planWorkload } from './plan-workloads.ts';
import { addNew, type Planning } from './planning.ts';

/** Status detail of an agent that the file suspended. */
export const SUSPENDED_DETAIL = 'Suspended by the governance file.';

/** The resolved names of an agent's entry. */
export type ResolvedNames = { ownerId: string; policyId: string; key: AgentKey | undefined };

export function newAgent(
  planning: Planning,
  { suspended, labels = [], workload }: AgentEntry,
  name: string,
  { ownerId, policyId, key }: ResolvedNames,
): AgentTable {
  const status = suspended ? 'suspended' : key || workload ? 'active' : 'pending_bind';
  const meant = { name, owner_id: ownerId, policy_id: policyId, origin: 'governance', status } as const;
  const birth = { organisation_id: planning.organisationId, ...newIds(), ...meant };
  const row = agentRow(birth, workload && !key ? null : 'key', key, planning.now);
  const labelled = { ...row, labels: storedLabels(labels) };
  return suspended ? { ...labelled, status_cause: 'owner_manual', status_detail: SUSPENDED_DETAIL } : labelled;
}

export function planCreation(
  planning: Planning,
  agent: AgentTable,
  entry: AgentEntry,
  policyName: string,
  key: AgentKey | undefined,
): void {
  const details = [
    `owner: ${entry.owner ?? planning.firstAdmin?.email}`,
    `policy: ${policyName}`,
    `public key: ${key ? key.fingerprint : entry.workload ? 'none; its workload has tokens' : 'none yet; a bootstrap token is printed'}`,
    ...(entry.suspended ? ['status: suspended'] : []),
    ...(entry.labels?.length ? [`labels: ${inOrder(entry.labels).join(', ')}`] : []),
  ];
  addNew(planning, { action: 'create', kind: 'agent', name: agent.name, details }, 'agents', agent);
  planWorkload(planning, agent, entry, { isNew: true });
  if (!key && !entry.workload) planning.newRows.keyless.push(agent);
}
