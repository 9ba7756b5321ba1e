/** Names of agents, for searches and lists of audit rows. */
import type { Db } from './store.ts';

/** Returns names by `agt_` id. */
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
 * Returns patterns for `lower(…) like lower(…) escape '\'` that match the text anywhere, case-insensitively. SQLite, and PostgreSQL with the
 * locale C, fold only ASCII letters, so the usual cases of other letters (as given, lower, upper, title) are listed.
 */
export function likesOf(text: string): string[] {
  const lower = text.toLowerCase();
  const title = lower.replaceAll(/(?<![\p{L}\p{M}])\p{L}/gu, (letter) => letter.toUpperCase());
  const cases = new Set([text, lower, text.toUpperCase(), title].map(fold));
  return [...cases].map((one) => `%${one.replaceAll(/[\\%_]/g, '\\$&')}%`);
}
