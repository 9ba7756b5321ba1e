/** A new agent of a governance file. */

import type { AgentEntry } from '../config-file/schema.ts';
import { newAgentId, uuidv4 } from '../crypto/ids.ts';
import type { AgentTable } from '../store/schema.ts';
import type { AgentKey } from './plan-keys.ts';
import { addNew, type Planning } from './planning.ts';

/** Says of a suspended agent that the file suspended it. */
export const SUSPENDED_DETAIL = 'Suspended by the governance file.';

/** What the names in an agent's entry stand for. */
export type Meant = { ownerId: string; policyId: string; key: AgentKey | undefined };

export function newAgent(
  planning: Planning,
  { suspended }: AgentEntry,
  name: string,
  { ownerId, policyId, key }: Meant,
): AgentTable {
  return {
    organisation_id: planning.organisationId,
    id: uuidv4(),
    agent_id: newAgentId(),
    name,
    owner_id: ownerId,
    agent_type: 'key',
    status: suspended ? 'suspended' : key ? 'active' : 'pending_bind',
    status_since: planning.now,
    status_cause: suspended ? 'owner_manual' : null,
    status_detail: suspended ? SUSPENDED_DETAIL : null,
    policy_id: policyId,
    origin: 'governance',
    parent_id: null,
    public_key_pem: key?.pem ?? null,
    key_fingerprint: key?.fingerprint ?? null,
    created_at: planning.now,
    expires_at: null,
  };
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
    key ? `public key: ${key.fingerprint}` : 'public key: none yet; a bootstrap token is printed',
    ...(entry.suspended ? ['status: suspended'] : []),
  ];
  addNew(planning, { action: 'create', kind: 'agent', name: agent.name, details }, 'agents', agent);
  if (!key) planning.newRows.keyless.push(agent);
}
