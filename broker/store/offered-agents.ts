/** Reads of the agents of an organisation that the consent page of an MCP client needs, which do not read all agents. */
import { sql } from 'kysely';
import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';

/** Agents that were not revoked, without children. */
const live = (db: Db, organisationId: string) =>
  db
    .selectFrom('agents as a')
    .where('a.organisation_id', '=', organisationId)
    .where('a.parent_id', 'is', null)
    .where('a.status', 'not in', ['revoked', 'deleted']);

/** Whether the name of an agent begins with a text: as `like` does, but every character stands for itself. */
const beginsWith = (text: string) => sql<boolean>`substr(a.name, 1, length(cast(${text} as text))) = ${text}`;

/** Lists the names of live agents that begin with a text. */
export async function listNamesWith(db: Db, organisationId: string, beginning: string): Promise<string[]> {
  const found = await live(db, organisationId).select('a.name').where(beginsWith(beginning)).execute();
  return found.map(({ name }) => name);
}

/**
 * Lists live agents of MCP clients, oldest first, at most `limit`: the one of the public id `first`, then those whose name begins with a text, then
 * others.
 */
export async function listClientAgents(
  db: Db,
  organisationId: string,
  { first, beginning, limit }: { first: string | undefined; beginning: string; limit: number },
): Promise<Pick<AgentTable, 'agent_id' | 'name'>[]> {
  return await live(db, organisationId)
    .select(['a.agent_id', 'a.name'])
    .where('a.agent_type', '=', 'mcp_client')
    .orderBy(sql`case when a.agent_id = ${first ?? ''} then 0 when ${beginsWith(beginning)} then 1 else 2 end`)
    .orderBy('a.created_at')
    .orderBy('a.id')
    .limit(limit)
    .execute();
}

/**
 * Lists live agents that have grants, and none with constraints, an end, approvals or a connection of its own: the oldest `limit` of them, oldest first.
 */
export async function listAgentsOfScopesAlone(
  db: Db,
  organisationId: string,
  limit: number,
): Promise<Pick<AgentTable, 'id' | 'agent_id' | 'name'>[]> {
  return await live(db, organisationId)
    .select(['a.id', 'a.agent_id', 'a.name'])
    .where((eb) => {
      const own = eb
        .selectFrom('grants as g')
        .select('g.id')
        .whereRef('g.organisation_id', '=', 'a.organisation_id')
        .whereRef('g.agent_id', '=', 'a.id');
      const more = own.where((of) =>
        of.or([
          of('g.constraints', '!=', '{}'),
          of('g.require_approval', '!=', 0),
          of('g.expires_at', 'is not', null),
          of('g.connection_id', 'is not', null),
        ]),
      );
      return eb.and([eb.exists(own), eb.not(eb.exists(more))]);
    })
    .orderBy('a.created_at')
    .orderBy('a.id')
    .limit(limit)
    .execute();
}
