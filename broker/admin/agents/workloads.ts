/** Workloads of agents: the token issuer by which an agent without a key of its own is authenticated. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, updateAgent } from '../../store/agents.ts';
import { endOneTimeTokens } from '../../store/governance.ts';
import { type EndedChildren, revokeChildren } from '../../store/revoke-agent.ts';
import type { Db } from '../../store/store.ts';
import type { AgentTable, WorkloadTable } from '../../store/tables/agents.ts';
import { deleteWorkload, findWorkloadOf, putWorkload } from '../../store/workloads.ts';
import { describeGranted } from '../grants/granted-terms.ts';
import { ChangeRefused } from '../refused.ts';
import { setAgentStatus } from './change-agent-status.ts';
import { loadAgent } from './find-agent.ts';
import { checkNewAgent, makeAgent, type NewAgent, newIds } from './new-agent.ts';

export type SetWorkload = Pick<WorkloadTable, 'issuer' | 'subject' | 'jwks_uri'>;
export type ReadWorkload = WorkloadTable;

/**
 * Sets the workload of an agent: from now on tokens of this subject authenticate it, in addition to its key, and those of a former workload do not.
 * Returns the agent's id (`agt_…`) with it. Throws ChangeRefused, or AuditUnavailable: then nothing is changed.
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
      'The tokens of a child identity or an MCP client are issued by the broker: it cannot have a workload.',
    );
  const change = { reason: 'workload_set', agent, detail: meant.subject };
  const { workload, ended } = await recordInTurn(services, by, change, async (db, note) => {
    const now = present(await findAgent(db, organisation_id, agent.id), 'agent');
    if (now.status === 'revoked' || now.status === 'deleted')
      throw new ChangeRefused('conflict', 'This agent is revoked: tokens for it are no longer accepted.');
    if (now.status === 'pending')
      throw new ChangeRefused(
        'conflict',
        'This agent has not collected its key yet: it can have a workload only after that.',
      );
    const made = newWorkload(agent, meant, 'owner', clock());
    const children = await assignWorkload(db, now, made, clock());
    note({
      workload: made.id,
      issuer: made.issuer,
      subject: made.subject,
      jwks_uri: made.jwks_uri,
      ...(children.count > 0 && { children_ended: children.count }),
    });
    for (const request of children.requests) await services.changes.announce(db, request);
    return { workload: made, ended: children.requests };
  });
  for (const request of ended) services.changes.tell(request);
  return { agentId: agent.agent_id, workload };
}

/**
 * Creates an active agent without a key: it is authenticated only by tokens of its workload. Throws ChangeRefused, or AuditUnavailable: then nothing
 * is created.
 */
export async function createWithWorkload(
  services: Changing & Uses<'config'>,
  by: ChangingOwner,
  made: NewAgent,
  meant: SetWorkload,
): Promise<{ agent: AgentTable; workload: ReadWorkload }> {
  const { id: owner_id, organisation_id } = by.owner;
  const { name, grants } = made;
  const ids = newIds();
  const change = { reason: 'agent_created', agent: ids, detail: name };
  return await recordInTurn(services, by, change, async (db, note) => {
    const now = services.broker.clock();
    const policy = await checkNewAgent(services, db, organisation_id, made);
    const birth = { organisation_id, ...ids, name, owner_id, policy_id: policy?.id ?? null } as const;
    await makeAgent(db, { ...birth, origin: 'owner', status: 'active' }, 'workload', grants, now);
    const workload = newWorkload({ organisation_id, id: ids.id }, meant, 'owner', now);
    await putWorkload(db, workload);
    note({
      workload: workload.id,
      issuer: meant.issuer,
      subject: meant.subject,
      jwks_uri: meant.jwks_uri,
      policy: birth.policy_id,
      granted: describeGranted(grants),
    });
    return { agent: present(await findAgent(db, organisation_id, ids.id), 'agent'), workload };
  });
}

/** Builds the row of a workload that was not used yet. */
export const newWorkload = (
  { organisation_id, id: agent_id }: Pick<AgentTable, 'organisation_id' | 'id'>,
  { issuer, subject, jwks_uri }: SetWorkload,
  origin: WorkloadTable['origin'],
  created_at: Instant,
): WorkloadTable => ({
  organisation_id,
  agent_id,
  id: uuidv4(),
  issuer,
  subject,
  jwks_uri,
  created_at,
  last_used_at: null,
  origin,
});

/**
 * In a transaction: stores the workload of an agent. An agent that waits for a key becomes active, and its bootstrap tokens are revoked. When it
 * replaces another workload, the agent's children are ended, since whoever had tokens of the former one may have made them. Returns the ended
 * children.
 */
export async function assignWorkload(
  db: Db,
  agent: AgentTable,
  workload: WorkloadTable,
  now: Instant,
): Promise<EndedChildren> {
  const { organisation_id: organisationId, id } = agent;
  const before = await findWorkloadOf(db, workload);
  await putWorkload(db, workload);
  if (agent.public_key_pem === null) {
    await updateAgent(db, organisationId, id, { agent_type: null });
    await setAgentStatus(db, agent, { from: ['pending_bind'], to: 'active', cause: null, detail: null }, now);
    await endOneTimeTokens(db, { organisationId, kind: 'bootstrap', subject: id }, now);
  }
  const isReplaced = before !== undefined && IDENTITY.some((field) => before[field] !== workload[field]);
  return isReplaced ? await revokeChildren(db, { organisationId, id }, now) : { count: 0, requests: [] };
}

const IDENTITY = ['issuer', 'subject', 'jwks_uri'] as const satisfies (keyof WorkloadTable)[];

/**
 * Removes the workload: the agent is authenticated by its key alone, and its children are ended, since whoever had its tokens may have made them.
 * Throws ChangeRefused, or AuditUnavailable: then nothing is changed.
 */
export async function removeWorkload(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  const { db } = services.broker.store;
  const agent = await loadAgent(db, by.owner.organisation_id, id);
  const ref = { organisation_id: agent.organisation_id, agent_id: agent.id };
  const requests = await recordInTurn(services, by, { reason: 'workload_removed', agent }, async (tx, note) => {
    const found = await findWorkloadOf(tx, ref);
    if (!found) throw new ChangeRefused('not_found', 'This agent has no workload.');
    await deleteWorkload(tx, ref);
    const place = { organisationId: agent.organisation_id, id: agent.id };
    const ended = await revokeChildren(tx, place, services.broker.clock());
    note({ workload: found.id, ...(ended.count > 0 && { children_ended: ended.count }) });
    for (const request of ended.requests) await services.changes.announce(tx, request);
    return ended.requests;
  });
  for (const request of requests) services.changes.tell(request);
}
