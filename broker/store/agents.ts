import { sql } from 'kysely';
import { AGENT_ID_PATTERN, UUID_PATTERN } from '../crypto/ids.ts';
import type { AgentStatus, HaltCause } from '../policy/facts.ts';
import { endStandingOfGrants } from './standing-approvals.ts';
import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';
import type { GrantTable } from './tables/rules.ts';

/** An organisation's agents without their children, oldest first; deleted ones only on request. */
export async function listAgents(db: Db, organisationId: string, options = { deleted: false }): Promise<AgentTable[]> {
  let query = db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('parent_id', 'is', null);
  if (!options.deleted) query = query.where('status', '!=', 'deleted');
  return await query.orderBy('created_at').orderBy('id').execute();
}

/** Lists the next agents by uuid, without children, deleted ones included, for callers that read thousands in pages. */
export async function listAgentsAfter(
  db: Db,
  organisationId: string,
  { after, limit }: { after: string; limit: number },
): Promise<AgentTable[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('parent_id', 'is', null)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/**
 * Lists the agents shown to owners, oldest first: all that are not deleted, without children that had expired by `endedBy`, of which
 * there may be very many.
 */
export async function listShownAgents(db: Db, organisationId: string, endedBy: number): Promise<AgentTable[]> {
  const topLevel = await listAgents(db, organisationId);
  const children = await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('parent_id', 'is not', null)
    .where('expires_at', '>', endedBy)
    .where('status', '!=', 'deleted')
    .execute();
  return [...topLevel, ...children].sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
}

/** One agent of an organisation by its uuid or its `agt_` id, or undefined. */
export async function findAgent(db: Db, organisationId: string, idOrAgentId: string): Promise<AgentTable | undefined> {
  const column = AGENT_ID_PATTERN.test(idOrAgentId) ? 'agent_id' : 'id';
  if (column === 'id' && !UUID_PATTERN.test(idOrAgentId)) return undefined;
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where(column, '=', idOrAgentId.toLowerCase())
    .executeTakeFirst();
}

/** Locks an agent against concurrent changes of its status until the transaction ends. */
export async function lockAgent(
  db: Db,
  { organisation_id: organisationId, id }: Pick<AgentTable, 'organisation_id' | 'id'>,
): Promise<void> {
  await db
    .updateTable('agents')
    .set((eb) => ({ agent_id: eb.ref('agent_id') }))
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .execute();
}

/**
 * The agent of this name that is not revoked, the oldest if there are several; or undefined. Children are excluded: their names
 * are chosen by their parent and reserve nothing.
 */
export async function findLiveAgentNamed(
  db: Db,
  organisationId: string,
  name: string,
): Promise<AgentTable | undefined> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('name', '=', name)
    .where('parent_id', 'is', null)
    .where('status', 'not in', ['revoked', 'deleted'])
    .orderBy('created_at')
    .orderBy('id')
    .executeTakeFirst();
}

/** Lists the distinct label lists as stored, with how many agents have each, and the id of one of these agents. */
export const listLabels = (db: Db, organisationId: string) =>
  db
    .selectFrom('agents')
    .select((eb) => ['labels', eb.fn.min('id').as('id'), eb.fn.countAll().as('agents')])
    .where('organisation_id', '=', organisationId)
    .where('status', '!=', 'deleted')
    .where('labels', 'is not', null)
    .groupBy('labels')
    .execute();

/** Inserts an agent. */
export async function putAgent(db: Db, agent: AgentTable): Promise<void> {
  await db.insertInto('agents').values(agent).execute();
}

/** One agent, or several: some thousands at most, because SQLite accepts 32,766 parameters per statement. */
export type AgentRef = { organisationId: string; id: string | readonly string[] };

/** Builds the list of former owners, without duplicates, when `ownerId` becomes the owner. */
const formerOwners = (ownerId: string) =>
  sql<string | null>`case when owner_id = ${ownerId} or former_owners like '%' || owner_id || '%' then former_owners
    else coalesce(former_owners || ' ', '') || owner_id end`;

/** Updates the governed columns of agents. A new owner also becomes the owner of their children and of their registrations. */
export async function updateAgent(
  db: Db,
  organisationId: string,
  id: AgentRef['id'],
  change: Partial<Pick<AgentTable, 'name' | 'agent_type' | 'owner_id' | 'policy_id' | 'labels'>>,
): Promise<void> {
  await db
    .updateTable('agents')
    .set({ ...change, ...(change.owner_id !== undefined && { former_owners: formerOwners(change.owner_id) }) })
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', [id].flat())
    .execute();
  if (change.owner_id === undefined) return;
  await db
    .updateTable('agents')
    .set({ owner_id: change.owner_id })
    .where('organisation_id', '=', organisationId)
    .where('parent_id', 'in', [id].flat())
    .execute();
  await db
    .updateTable('registrations')
    .set({ owner_id: change.owner_id })
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', (eb) =>
      eb
        .selectFrom('agents')
        .select('agents.agent_id')
        .where('agents.organisation_id', '=', organisationId)
        .where('agents.id', 'in', [id].flat()),
    )
    .execute();
}

export type StatusMove = {
  from: readonly AgentStatus[];
  to: AgentStatus;
  cause: HaltCause | null;
  detail: string | null;
};

/** Status on resuming: an agent with a key that was suspended before the key was bound still waits for it. */
const activeOnceBound = sql<AgentStatus>`case when agent_type = 'key' and public_key_pem is null then 'pending_bind' else 'active' end`;

/**
 * Moves an agent from one of the statuses `from` to another, in one guarded statement. Returns whether it moved; false: it was in another
 * status, or does not exist.
 */
export async function moveAgent(
  db: Db,
  agent: { organisationId: string; id: string },
  move: StatusMove,
  now: number,
): Promise<boolean> {
  return (await moveAgents(db, agent, move, now)) === 1;
}

/** Moves several agents as `moveAgent` does. Returns how many moved. */
export async function moveAgents(
  db: Db,
  { organisationId, id }: AgentRef,
  move: StatusMove,
  now: number,
): Promise<number> {
  const moved = await db
    .updateTable('agents')
    .set({
      status: move.to === 'active' ? activeOnceBound : move.to,
      status_since: now,
      status_cause: move.cause,
      status_detail: move.detail,
    })
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', [id].flat())
    .where('status', 'in', move.from)
    .returning('id')
    .execute();
  return moved.length;
}

/** The grants of an agent, of several (one or more), or of a whole organisation, in a stable order. */
export async function listGrants(
  db: Db,
  organisationId: string,
  agentUuid?: string | readonly string[],
): Promise<GrantTable[]> {
  let query = db.selectFrom('grants').selectAll().where('organisation_id', '=', organisationId);
  if (agentUuid !== undefined) query = query.where('agent_id', 'in', [agentUuid].flat());
  return await query.orderBy('platform_id').orderBy('created_at').orderBy('id').execute();
}

/** Lists the next grants by id, for callers that read thousands in pages. */
export async function listGrantsAfter(
  db: Db,
  organisationId: string,
  { after, limit }: { after: string; limit: number },
): Promise<GrantTable[]> {
  return await db
    .selectFrom('grants')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Writes a grant: a new one, or the new terms of one with the same id. */
export async function putGrant(db: Db, grant: GrantTable): Promise<void> {
  const { organisation_id: _organisation, id: _id, created_at: _created, ...terms } = grant;
  await db
    .insertInto('grants')
    .values(grant)
    .onConflict((c) => c.columns(['organisation_id', 'id']).doUpdateSet(terms))
    .execute();
}

/** Deletes a grant, or several; effective at the next decision. */
export async function deleteGrant(
  db: Db,
  organisationId: string,
  id: string | readonly string[],
  now: number,
): Promise<void> {
  await endStandingOfGrants(db, organisationId, [id].flat(), now);
  await db.deleteFrom('grants').where('organisation_id', '=', organisationId).where('id', 'in', [id].flat()).execute();
}
