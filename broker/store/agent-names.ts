/** Agents by name, and names of agents: for people who look for what is on record. */
import { sql } from 'kysely';
import type { Db } from './store.ts';

/** `agt_` ids of at most `limit` agents whose names hold the text, in whichever case; deleted ones, too, for the record keeps theirs. */
export async function findAgentsNamed(db: Db, organisationId: string, text: string, limit: number): Promise<string[]> {
  const rows = await db
    .selectFrom('agents')
    .select('agent_id')
    .where('organisation_id', '=', organisationId)
    .where((eb) => sql<boolean>`lower(${eb.ref('name')}) like ${likeOf(text)} escape '\\'`)
    .limit(limit)
    .execute();
  return rows.map(({ agent_id }) => agent_id);
}

/** Names by `agt_` id. */
export async function findAgentNames(
  db: Db,
  organisationId: string,
  agentIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (agentIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('agents')
    .select(['agent_id', 'name'])
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', agentIds)
    .execute();
  return new Map(rows.map(({ agent_id, name }) => [agent_id, name]));
}

/** A pattern for `lower(…) like … escape '\'`: the text anywhere. */
export const likeOf = (text: string): string => `%${text.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
