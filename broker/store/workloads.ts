/** Workloads of agents: issuers and subjects of tokens that are accepted instead of those that an agent signs. */
import type { Db } from './store.ts';
import type { WorkloadTable } from './tables/agents.ts';

type AgentRef = Pick<WorkloadTable, 'organisation_id' | 'agent_id'>;

/** Inserts or replaces an agent's workload. */
export async function putWorkload(db: Db, workload: WorkloadTable): Promise<void> {
  const { organisation_id: _organisation, agent_id: _agent, ...rest } = workload;
  await db
    .insertInto('workloads')
    .values(workload)
    .onConflict((c) => c.columns(['organisation_id', 'agent_id']).doUpdateSet(rest))
    .execute();
}

/** Returns the workload of the agent with this id (`agt_…`), of any organisation; undefined when it has none. */
export async function findWorkload(db: Db, agentId: string): Promise<WorkloadTable | undefined> {
  return await db
    .selectFrom('agents as a')
    .innerJoin('workloads as w', (j) =>
      j.onRef('w.organisation_id', '=', 'a.organisation_id').onRef('w.agent_id', '=', 'a.id'),
    )
    .selectAll('w')
    .where('a.agent_id', '=', agentId)
    .executeTakeFirst();
}

/** Returns the workload of an agent by uuid; undefined when it has none. */
export async function findWorkloadOf(
  db: Db,
  { organisation_id, agent_id }: AgentRef,
): Promise<WorkloadTable | undefined> {
  return await db
    .selectFrom('workloads')
    .selectAll()
    .where('organisation_id', '=', organisation_id)
    .where('agent_id', '=', agent_id)
    .executeTakeFirst();
}

/** Returns a page of the workloads of an organisation's agents, by agent id. */
export async function listWorkloadsAfter(
  db: Db,
  organisationId: string,
  { after, limit }: { after: string; limit: number },
): Promise<WorkloadTable[]> {
  return await db
    .selectFrom('workloads')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Deletes an agent's workload; the next request with its token is refused. */
export async function deleteWorkload(db: Db, { organisation_id, agent_id }: AgentRef): Promise<void> {
  await db
    .deleteFrom('workloads')
    .where('organisation_id', '=', organisation_id)
    .where('agent_id', '=', agent_id)
    .execute();
}

/** Sets when these workloads were last used. */
export async function setWorkloadsUsed(db: Db, ids: readonly string[], at: number): Promise<void> {
  await db.updateTable('workloads').set({ last_used_at: at }).where('id', 'in', ids).execute();
}
