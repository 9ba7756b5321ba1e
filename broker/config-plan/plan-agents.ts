/** Plans agents: created, assigned another owner or policy, given another key, revoked when the file no longer names them. */

import { setAgentStatus } from '../admin/agents/change-agent-status.ts';
import { difference } from '../config-file/differences.ts';
import { entriesOf } from '../config-file/governance.ts';
import type { AgentEntry } from '../config-file/schema.ts';
import { DEFAULT_POLICY } from '../policy/default-policy.ts';
import { storedLabels } from '../policy/labels.ts';
import { updateAgent } from '../store/agents.ts';
import { revokeChildren } from '../store/revoke-agent.ts';
import type { Db } from '../store/store.ts';
import { readLabels } from '../store/stored-terms.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import { newAgent, planCreation, type ResolvedNames, SUSPENDED_DETAIL } from './plan-agent-creation.ts';
import { keepGrants, planGrants, removeGrants } from './plan-grants.ts';
import { keyOf, mint, planKey } from './plan-keys.ts';
import { planWorkload, willHaveWorkload } from './plan-workloads.ts';
import { addConflict, addProblem, addStep, addTogether, ChangedMeanwhile, type Planning } from './planning.ts';
import { REMOVED_DETAILS } from './write-together.ts';

/** Status detail of an agent that came back suspended. */
const CAME_BACK_DETAIL = 'It was suspended when the governance file left it out.';

const wasLeftOut = ({ status_detail: detail }: AgentTable) =>
  Object.values<string | null>(REMOVED_DETAILS).includes(detail);
const isLive = (agent: AgentTable) => agent.status !== 'revoked' && agent.status !== 'deleted';

/** `rest` is awaited between agents, of which there may be thousands. */
export async function planAgents(planning: Planning, rest: () => Promise<void>): Promise<void> {
  const { present, governance } = planning;
  const { agents } = governance.document;
  const planned = new Set<string>();
  const byName = Map.groupBy(present.agents, (agent) => agent.name);
  for (const [name, entry] of entriesOf(agents)) {
    await rest();
    const named = byName.get(name) ?? [];
    const known = findNamed(planning, name, named);
    if (known === 'problem') {
      for (const agent of named.filter(isLive)) {
        planned.add(agent.id);
        keep(planning, agent);
      }
      continue;
    }
    if (known) planned.add(known.id);
    if (known?.status === 'revoked' && !wasLeftOut(known)) {
      planning.warnings.push({
        path: ['agents', name],
        message: 'was revoked permanently: a governance file cannot undo that. For a new agent, use another name.',
      });
      keep(planning, known);
    } else planNamed(planning, name, entry, known);
  }
  for (const agent of present.agents) {
    await rest();
    if (planned.has(agent.id)) continue;
    if (agents !== undefined && agent.origin === 'governance' && isLive(agent)) planRemoval(planning, agent);
    else keep(planning, agent);
  }
}

/** Returns the agent of this name: a live one before a revoked one, of several revoked ones the newest. */
function findNamed(
  planning: Planning,
  name: string,
  agents: readonly AgentTable[],
): AgentTable | undefined | 'problem' {
  const named = agents.filter((agent) => agent.status !== 'deleted');
  const live = named.filter(isLive);
  if (live.length > 1) {
    const why = `there are ${live.length} agents of this name;`;
    const refused = 'revoke all but one.';
    addConflict(planning, ['agents', name], { why, refused, left: `they were left as they are: ${refused}` }, 'key');
    return 'problem';
  }
  return live[0] ?? named.toSorted((a, b) => (b.status_since ?? 0) - (a.status_since ?? 0))[0];
}

function planNamed(planning: Planning, name: string, entry: AgentEntry, known: AgentTable | undefined): void {
  const { firstAdmin } = planning;
  const ownerId = entry.owner === undefined ? firstAdmin?.id : planning.ownerIds.get(entry.owner);
  const policyName = entry.policy ?? DEFAULT_POLICY;
  const policyId = planning.policyIds.get(policyName);
  const key = keyOf(planning, name, entry, known);
  // For each of these a problem was already added.
  if (ownerId === undefined || policyId === undefined) return;
  if (key === 'stays') {
    if (known) keep(planning, known);
    return;
  }
  const wants = known?.status === 'pending' && (entry.suspended ? 'suspended' : entry.workload && 'workload');
  if (wants) {
    const will = wants === 'suspended' ? 'be suspended' : 'have a workload';
    addProblem(
      planning,
      ['agents', name, wants],
      `it has not collected its key yet, and can ${will} only when it has.`,
    );
    return;
  }
  const agent = known ?? newAgent(planning, entry, name, { ownerId, policyId, key });
  planning.futureAgents.push({ id: agent.id, name, ownerId, policyId, live: true });
  if (!known) planCreation(planning, agent, entry, policyName, key);
  else {
    if (known.origin !== 'governance') adopt(planning, known);
    planWorkload(planning, known, entry);
    planUpdate(planning, known, entry, { ownerId, policyId, key });
    if (key && key.fingerprint !== known.key_fingerprint) planKey(planning, known, key);
  }
  planGrants(planning, agent, entry.grants, known !== undefined);
}

function planUpdate(
  planning: Planning,
  known: AgentTable,
  entry: AgentEntry,
  { ownerId, policyId, key }: ResolvedNames,
): void {
  const { now, organisationId } = planning;
  const { suspended, labels } = entry;
  const returns = known.status === 'revoked';
  // An MCP client's agent does not wait for a key: its client reconnects through an owner's consent.
  const hasWorkload = willHaveWorkload(planning, known, entry);
  const waits = known.public_key_pem === null && known.agent_type !== 'mcp_client' && !hasWorkload;
  // A file never resumes an agent: that is an owner's decision, also when the file left the agent out meanwhile.
  const stays = returns && known.status_detail === REMOVED_DETAILS.suspended;
  const to = suspended || stays ? 'suspended' : returns ? (waits ? 'pending_bind' : 'active') : known.status;
  const details = [
    ...difference('owner', ownerEmail(planning, known.owner_id), ownerEmail(planning, ownerId)),
    ...difference('policy', policyNameOf(planning, known.policy_id), policyNameOf(planning, policyId)),
    ...(to === known.status ? [] : difference('status', known.status, to === 'pending_bind' && key ? 'active' : to)),
  ];
  const labelled = labels === undefined ? known.labels : storedLabels(labels);
  const isLabelled = labelled !== known.labels;
  if (isLabelled) details.push(...difference('labels', listed(known.labels, known.id), listed(labelled, known.id)));
  if (details.length === 0) return;
  const change = { action: 'update' as const, kind: 'agent' as const, name: known.name, details };
  if (ownerId !== known.owner_id || policyId !== known.policy_id) reassign(planning, known.id, { ownerId, policyId });
  const relabel = (db: Db) => updateAgent(db, organisationId, known.id, { labels: labelled });
  if (to === known.status) {
    if (isLabelled) addStep(planning, change, relabel);
    else planning.steps.push({ change });
    return;
  }
  addStep(planning, change, async (db, made) => {
    if (isLabelled) await relabel(db);
    const because =
      to === 'suspended'
        ? { cause: 'owner_manual' as const, detail: suspended ? SUSPENDED_DETAIL : CAME_BACK_DETAIL }
        : { cause: null, detail: null };
    if (
      !(await setAgentStatus(
        db,
        known,
        { from: hasWorkload ? [known.status, 'active'] : [known.status], to, ...because },
        now,
      ))
    )
      throw new ChangedMeanwhile(`The agent ${known.name}`);
    // Children may have been created by somebody who had the agent's key or tokens before the file left it out.
    if (returns) made.ended.push(...(await revokeChildren(db, { organisationId, id: known.id }, now)).requests);
    if (returns && waits && !key) await mint(db, known, made, planning);
  });
}

const listed = (labels: string | null, id: string) => (labels === null ? undefined : readLabels(labels, id));

function reassign(
  { together }: Planning,
  id: string,
  { ownerId, policyId }: Pick<ResolvedNames, 'ownerId' | 'policyId'>,
): void {
  const key = `${ownerId} ${policyId}`;
  const group = together.reassigned.get(key) ?? { change: { owner_id: ownerId, policy_id: policyId }, ids: [] };
  group.ids.push(id);
  together.reassigned.set(key, group);
}

/** Revokes the agent. It is never deleted, because receipts refer to it; its grants are removed, so that they do not apply if it returns. */
function planRemoval(planning: Planning, agent: AgentTable): void {
  removeGrants(planning, agent);
  addFuture(planning, agent, false);
  const details = [`status: ${agent.status} → revoked`];
  addTogether(planning, { action: 'delete', kind: 'agent', name: agent.name, details }, ({ revoked }) =>
    revoked.push(agent),
  );
}

function keep(planning: Planning, agent: AgentTable): void {
  const live = isLive(agent);
  addFuture(planning, agent, live);
  keepGrants(planning, agent, live);
}

const addFuture = ({ futureAgents }: Planning, { id, name, owner_id, policy_id }: AgentTable, live: boolean) =>
  futureAgents.push({ id, name, ownerId: owner_id, policyId: policy_id, live });

function adopt(planning: Planning, agent: AgentTable): void {
  planning.adopted.push(agent.id);
  planning.warnings.push({
    path: ['agents', agent.name],
    message: 'was not created by a governance file. From now on this file manages it, and omitting it revokes it.',
  });
}

function ownerEmail({ present, ownerIds }: Planning, id: string): string {
  const email = present.owners.find((owner) => owner.id === id)?.email;
  return email ?? [...ownerIds].find(([, known]) => known === id)?.[0] ?? id;
}

function policyNameOf({ policyIds }: Planning, id: string | null): string | undefined {
  return [...policyIds].find(([, known]) => known === id)?.[0];
}
