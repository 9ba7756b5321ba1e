/** Plans workloads of agents: the issuer and subject by whose tokens an agent without a key authenticates. */

import { assignWorkload, newWorkload } from '../admin/agents/workloads.ts';
import { difference } from '../config-file/differences.ts';
import { nameAsWord } from '../config-file/name.ts';
import type { AgentEntry } from '../config-file/schema.ts';
import { revokeChildren } from '../store/revoke-agent.ts';
import type { AgentTable, WorkloadTable } from '../store/tables/agents.ts';
import { deleteWorkload } from '../store/workloads.ts';
import { addConflict, addNew, addStep, type Planning } from './planning.ts';

type WorkloadIdentity = Pick<WorkloadTable, 'issuer' | 'subject' | 'jwks_uri'>;

const identityOf = ({ workload }: AgentEntry): WorkloadIdentity | undefined =>
  workload && { issuer: workload.issuer, subject: workload.subject, jwks_uri: workload.jwks_uri ?? null };

const FIELDS = ['issuer', 'subject', 'jwks_uri'] as const satisfies (keyof WorkloadIdentity)[];

/** Whether the agent will have a workload: the one of the file, or one that an owner set. */
export const willHaveWorkload = ({ present }: Planning, known: AgentTable, { workload }: AgentEntry): boolean =>
  workload !== undefined || present.workloads.get(known.id)?.origin === 'owner';

/**
 * Replaces the agent's workload by the file's. When the file names none, a workload from a file is removed; one that an owner set stays.
 *
 * @param isNew whether the agent's row is written with this plan
 */
export function planWorkload(
  planning: Planning,
  agent: AgentTable,
  entry: AgentEntry,
  { isNew = false }: { isNew?: boolean } = {},
): void {
  const { now, present } = planning;
  const said = identityOf(entry);
  const before = isNew ? undefined : present.workloads.get(agent.id);
  if (said === undefined) {
    if (before?.origin === 'governance') planRemoval(planning, agent, before, entry);
    return;
  }
  if (agent.agent_type === 'mcp_client') {
    const why = 'an agent of this name exists already, and the broker issues its tokens: it cannot have a workload.';
    const refused = 'Use another name here, or revoke it.';
    addConflict(planning, ['agents', agent.name, 'workload'], { why, refused, left: `It has none. ${refused}` });
    return;
  }
  const details = FIELDS.flatMap((field) => difference(field, before?.[field], said[field]));
  if (details.length === 0) return;
  if (agent.status === 'pending_bind' && !entry.suspended)
    details.push(...difference('status', agent.status, 'active'));
  const change = { action: before ? 'update' : 'create', kind: 'workload', name: agent.name, details } as const;
  const row = newWorkload(agent, said, 'governance', now);
  const audience = { agent: agent.name, agentId: agent.agent_id };
  if (isNew) {
    addNew(planning, change, 'workloads', row);
    planning.newRows.trusting.push(audience);
    return;
  }
  addStep(planning, change, async (db, made) => {
    made.ended.push(...(await assignWorkload(db, agent, row, now)).requests);
    made.trusting.push(audience);
  });
}

function planRemoval(planning: Planning, agent: AgentTable, before: WorkloadTable, entry: AgentEntry): void {
  const details = FIELDS.flatMap((field) => difference(field, before[field], undefined));
  addStep(planning, { action: 'delete', kind: 'workload', name: agent.name, details }, async (db, made) => {
    const { organisation_id: organisationId, id } = agent;
    await deleteWorkload(db, { organisation_id: organisationId, agent_id: id });
    made.ended.push(...(await revokeChildren(db, { organisationId, id }, planning.now)).requests);
  });
  if (agent.public_key_pem === null && entry.public_key === undefined)
    planning.warnings.push({
      path: ['agents', agent.name],
      message: `then has neither a key nor a workload, so it cannot authenticate. An owner makes the token with which it brings a key: agent-broker agent bootstrap ${nameAsWord(agent.name)}.`,
    });
}
