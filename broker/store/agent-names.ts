/** Names of agents, for people who look for what is on record. */
import type { Db } from './store.ts';

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
