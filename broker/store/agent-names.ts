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

const fold = (text: string) => text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * Patterns for `lower(…) like lower(…) escape '\'`: the text anywhere, in whichever case. SQLite, and PostgreSQL with the locale C, fold only letters of ASCII,
 * so that of others the cases are listed that people write.
 */
export function likesOf(text: string): string[] {
  const lower = text.toLowerCase();
  const title = lower.replaceAll(/(?<![\p{L}\p{M}])\p{L}/gu, (letter) => letter.toUpperCase());
  const cases = new Set([text, lower, text.toUpperCase(), title].map(fold));
  return [...cases].map((one) => `%${one.replaceAll(/[\\%_]/g, '\\$&')}%`);
}
