/** Authorisations of MCP clients to act as agents. */
import type { AgentStatus } from '../policy/facts.ts';
import type { AgentRef } from './agents.ts';
import type { Db } from './store.ts';
import type { McpAuthorisationTable } from './tables/agents.ts';

/** Stores a new consent. */
export async function putMcpAuthorisation(
  db: Db,
  authorisation: Omit<McpAuthorisationTable, 'ended_at' | 'ended_because'>,
): Promise<void> {
  await db
    .insertInto('mcp_authorisations')
    .values({ ...authorisation, ended_at: null, ended_because: null })
    .execute();
}

export type LiveAuthorisation = McpAuthorisationTable & { agent_public_id: string; agent_status: AgentStatus };

/** The authorisation with its agent, unless it was revoked or has expired, or its agent was revoked. */
export async function findLiveAuthorisation(db: Db, id: string, now: number): Promise<LiveAuthorisation | undefined> {
  return await db
    .selectFrom('mcp_authorisations as m')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'm.organisation_id').onRef('a.id', '=', 'm.agent_id'),
    )
    .selectAll('m')
    .select(['a.agent_id as agent_public_id', 'a.status as agent_status'])
    .where('m.id', '=', id)
    .where('m.ended_at', 'is', null)
    .where('m.expires_at', '>', now)
    .where('a.status', 'not in', ['revoked', 'deleted'])
    .executeTakeFirst();
}

/** Returns the public id of the agent as which this owner authorised the client last, whether or not that has ended; undefined: none, or it was revoked. */
export async function findLastAuthorised(
  db: Db,
  { organisationId, ownerId, clientId }: { organisationId: string; ownerId: string; clientId: string },
): Promise<string | undefined> {
  const found = await db
    .selectFrom('mcp_authorisations as m')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'm.organisation_id').onRef('a.id', '=', 'm.agent_id'),
    )
    .select('a.agent_id')
    .where('m.organisation_id', '=', organisationId)
    .where('m.owner_id', '=', ownerId)
    .where('m.client_id', '=', clientId)
    .where('a.status', 'not in', ['revoked', 'deleted'])
    .orderBy('m.created_at', 'desc')
    .orderBy('m.id', 'desc')
    .executeTakeFirst();
  return found?.agent_id;
}

/** Revokes an authorisation in one guarded statement. Returns whether it was active. */
export async function endMcpAuthorisation(
  db: Db,
  id: string,
  because: NonNullable<McpAuthorisationTable['ended_because']>,
  now: number,
): Promise<boolean> {
  const ended = await db
    .updateTable('mcp_authorisations')
    .set({ ended_at: now, ended_because: because })
    .where('id', '=', id)
    .where('ended_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return ended !== undefined;
}

/** Revokes all active authorisations of agents that were revoked. */
export async function endMcpAuthorisationsOf(db: Db, { organisationId, id }: AgentRef, now: number): Promise<void> {
  await db
    .updateTable('mcp_authorisations')
    .set({ ended_at: now, ended_because: 'owner' })
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', [id].flat())
    .where('ended_at', 'is', null)
    .execute();
}

export type ListedAuthorisation = McpAuthorisationTable & {
  agent_public_id: string;
  agent_name: string;
  agent_status: AgentStatus;
  agent_status_since: number | null;
  owner_email: string;
  /** When the client last got a token; null: never, or so long ago that the token was deleted. */
  last_token_at: number | null;
};

/** The place of an authorisation among all of its organisation, newest first. */
export type AuthorisationPlace = Pick<McpAuthorisationTable, 'created_at' | 'id'>;

/** `agent`: its uuid or agent id. `isLive`: at `now`. `after`: the place after which the page begins. Without members: all. */
export type AuthorisationFilter = {
  id?: string | undefined;
  agent?: string | undefined;
  isLive?: boolean | undefined;
  after?: AuthorisationPlace | undefined;
  limit?: number | undefined;
};

/** Lists authorisations of an organisation, newest first, recently ended ones included. */
export async function listMcpAuthorisations(
  db: Db,
  organisationId: string,
  { after, limit, ...filter }: AuthorisationFilter,
  now: number,
): Promise<ListedAuthorisation[]> {
  let query = filtered(db, organisationId, filter, now);
  if (after !== undefined)
    query = query.where((eb) =>
      eb.or([
        eb('m.created_at', '<', after.created_at),
        eb.and([eb('m.created_at', '=', after.created_at), eb('m.id', '>', after.id)]),
      ]),
    );
  if (limit !== undefined) query = query.limit(limit);
  return await query
    .innerJoin('owners as o', (j) =>
      j.onRef('o.organisation_id', '=', 'm.organisation_id').onRef('o.id', '=', 'm.owner_id'),
    )
    .selectAll('m')
    .select(['a.agent_id as agent_public_id', 'a.name as agent_name', 'o.email as owner_email'])
    .select(['a.status as agent_status', 'a.status_since as agent_status_since'])
    .select((eb) =>
      // A refresh token is issued with every access token.
      eb
        .selectFrom('oauth_records as r')
        .select((of) => of.fn.max<number | null>('r.created_at').as('at'))
        .whereRef('r.authorisation_id', '=', 'm.id')
        .where('r.kind', '=', 'RefreshToken')
        .as('last_token_at'),
    )
    .orderBy('m.created_at', 'desc')
    .orderBy('m.id')
    .execute();
}

/** Counts authorisations of an organisation. */
export async function countMcpAuthorisations(
  db: Db,
  organisationId: string,
  filter: Pick<AuthorisationFilter, 'agent' | 'isLive'>,
  now: number,
): Promise<number> {
  const { count } = await filtered(db, organisationId, filter, now)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** The authorisations of a filter, each as `m`, with its agent as `a`. */
function filtered(
  db: Db,
  organisationId: string,
  { id, agent, isLive }: Pick<AuthorisationFilter, 'id' | 'agent' | 'isLive'>,
  now: number,
) {
  let query = db
    .selectFrom('mcp_authorisations as m')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'm.organisation_id').onRef('a.id', '=', 'm.agent_id'),
    )
    .where('m.organisation_id', '=', organisationId);
  if (id !== undefined) query = query.where('m.id', '=', id);
  if (agent !== undefined) query = query.where((eb) => eb.or([eb('a.agent_id', '=', agent), eb('a.id', '=', agent)]));
  if (isLive !== undefined)
    query = query.where((eb) => {
      const live = eb.and([
        eb('m.ended_at', 'is', null),
        eb('m.expires_at', '>', now),
        eb('a.status', 'not in', ['revoked', 'deleted']),
      ]);
      return isLive ? live : eb.not(live);
    });
  return query;
}

/**
 * Expires authorisations that can no longer be used: the code was never redeemed, or the last refresh token has expired.
 * Excluded are those created or used after `before`: by then no page, code or access token is valid any more.
 */
export async function expireUnusableAuthorisations(
  db: Db,
  { now, before }: { now: number; before: number },
): Promise<void> {
  await db
    .updateTable('mcp_authorisations')
    .set({ expires_at: now })
    .where('ended_at', 'is', null)
    .where('expires_at', '>', now)
    .where('created_at', '<', before)
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('oauth_records as r')
            .select('r.id')
            .whereRef('r.authorisation_id', '=', 'mcp_authorisations.id')
            .where('r.kind', '=', 'RefreshToken')
            .where('r.expires_at', '>', now)
            .where((used) => used.or([used('r.used_at', 'is', null), used('r.used_at', '>', before)])),
        ),
      ),
    )
    .execute();
}

/** Deletes authorisations that ended before `before`. */
export async function purgeMcpAuthorisations(db: Db, before: number): Promise<void> {
  await db
    .deleteFrom('mcp_authorisations')
    .where((eb) => eb.or([eb('expires_at', '<', before), eb('ended_at', '<', before)]))
    .execute();
}
