/** Standing approvals: created, used, ended. A use is one guarded statement, in the transaction of the audit row of its call. */
import { sql } from 'kysely';
import { addressOf } from './former-owners.ts';
import type { Db } from './store.ts';
import type { StandingApprovalTable } from './tables/approvals.ts';

type Ref = Pick<StandingApprovalTable, 'organisation_id' | 'id'>;

/** Stores a standing approval, which is in force from the commit on: a trigger renews the organisation's fact version. */
export async function putStandingApproval(
  db: Db,
  approval: Omit<StandingApprovalTable, 'uses_left' | 'ended_at' | 'ended_because' | 'ended_by'>,
): Promise<void> {
  await db
    .insertInto('standing_approvals')
    .values({ ...approval, uses_left: approval.uses, ended_at: null, ended_because: null, ended_by: null })
    .execute();
}

/**
 * Deducts one use, which is never given back; the last use ends the standing approval. Returns how many uses are left, and when and how it was
 * decided; undefined: it has no uses left, or has ended, and nothing was changed.
 *
 * @param now milliseconds since the epoch
 */
export async function useStandingApproval(
  db: Db,
  { organisation_id, id }: Ref,
  now: number,
): Promise<Pick<StandingApprovalTable, 'uses_left' | 'created_at' | 'decided_how'> | undefined> {
  return await db
    .updateTable('standing_approvals')
    .set((eb) => ({
      uses_left: eb('uses_left', '-', 1),
      ended_at: sql<number | null>`case when uses_left = 1 then cast(${now} as bigint) end`,
      ended_because: sql<'used' | null>`case when uses_left = 1 then 'used' end`,
    }))
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where('uses_left', '>', 0)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .returning(['uses_left', 'created_at', 'decided_how'])
    .executeTakeFirst();
}

/** Returns the immutable columns of a standing approval; undefined when there is none. */
export async function findStandingTerms(
  db: Db,
  organisationId: string,
  id: string,
): Promise<Pick<StandingApprovalTable, 'organisation_id' | 'id' | 'expires_at' | 'terms'> | undefined> {
  return await db
    .selectFrom('standing_approvals')
    .select(['organisation_id', 'id', 'expires_at', 'terms'])
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Whether it is in force, or ended only by its last use: calls that have used it may still be sent then. */
export async function standsFor(db: Db, { organisation_id, id }: Ref, now: number): Promise<boolean> {
  const found = await db
    .selectFrom('standing_approvals')
    .select('id')
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where('expires_at', '>', now)
    .where((eb) => eb.or([eb('ended_at', 'is', null), eb('ended_because', '=', 'used')]))
    .executeTakeFirst();
  return found !== undefined;
}

/** Counts the standing approvals of an agent that are in force. */
export async function countStanding(db: Db, organisationId: string, agentUuid: string, now: number): Promise<number> {
  const { count } = await db
    .selectFrom('standing_approvals')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentUuid)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** With display names of its agent, connection and decider; null: these were deleted. */
export type ListedStanding = StandingApprovalTable & {
  agent_public_id: string;
  agent_name: string;
  connection_label: string | null;
  decided_by_email: string | null;
};

const listed = (db: Db, organisationId: string) =>
  db
    .selectFrom('standing_approvals as s')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 's.organisation_id').onRef('a.id', '=', 's.agent_id'),
    )
    .leftJoin('connections as c', (j) =>
      j.onRef('c.organisation_id', '=', 's.organisation_id').onRef('c.id', '=', 's.connection_id'),
    )
    .selectAll('s')
    .select([
      'a.agent_id as agent_public_id',
      'a.name as agent_name',
      'c.label as connection_label',
      addressOf('s.organisation_id', 's.decided_by').as('decided_by_email'),
    ])
    .where('s.organisation_id', '=', organisationId);

/** Returns a standing approval of an organisation, ended ones included; undefined when there is none. */
export async function findStandingApproval(
  db: Db,
  organisationId: string,
  id: string,
): Promise<ListedStanding | undefined> {
  return await listed(db, organisationId).where('s.id', '=', id).executeTakeFirst();
}

/** Returns those of these standing approvals that still exist: ended ones are deleted after a while. */
export async function findStandingApprovals(
  db: Db,
  organisationId: string,
  ids: readonly string[],
): Promise<ListedStanding[]> {
  return ids.length === 0 ? [] : await listed(db, organisationId).where('s.id', 'in', ids).execute();
}

/** Returns a page, newest first, after the id `before`. Ids sort by creation. `now`: only those in force at that time. */
export async function listStandingApprovals(
  db: Db,
  organisationId: string,
  page: { agent?: string | undefined; now?: number | undefined; before?: string | undefined; limit: number },
): Promise<ListedStanding[]> {
  let query = listed(db, organisationId);
  const { agent, now, before } = page;
  if (agent !== undefined) query = query.where(agent.startsWith('agt_') ? 'a.agent_id' : 'a.id', '=', agent);
  if (now !== undefined) query = query.where('s.ended_at', 'is', null).where('s.expires_at', '>', now);
  if (before !== undefined) query = query.where('s.id', '<', before);
  return await query.orderBy('s.id', 'desc').limit(page.limit).execute();
}

/** Ends a standing approval in one guarded statement. Returns whether it was in force until then. */
export async function endStandingApproval(
  db: Db,
  { organisation_id, id }: Ref,
  by: string,
  now: number,
): Promise<boolean> {
  const ended = await db
    .updateTable('standing_approvals')
    .set({ ended_at: now, ended_because: 'owner', ended_by: by })
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .returning('id')
    .executeTakeFirst();
  return ended !== undefined;
}

/** Ends all standing approvals of agents that are revoked. */
export async function endStandingOfAgents(
  db: Db,
  organisationId: string,
  agents: readonly string[],
  now: number,
): Promise<void> {
  await db
    .updateTable('standing_approvals')
    .set({ ended_at: now, ended_because: 'agent' })
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', agents)
    .where('ended_at', 'is', null)
    .execute();
}

/** Ends all standing approvals made under grants that are removed. */
export async function endStandingOfGrants(
  db: Db,
  organisationId: string,
  grants: readonly string[],
  now: number,
): Promise<void> {
  await db
    .updateTable('standing_approvals')
    .set({ ended_at: now, ended_because: 'grant' })
    .where('organisation_id', '=', organisationId)
    .where('grant_id', 'in', grants)
    .where('ended_at', 'is', null)
    .execute();
}

/** Deletes standing approvals that ended or expired before `before`. */
export async function purgeStandingApprovals(db: Db, before: number): Promise<void> {
  await db
    .deleteFrom('standing_approvals')
    .where((eb) => eb.or([eb('expires_at', '<', before), eb('ended_at', '<', before)]))
    .execute();
}
