/** Which MCP clients owners let act as which agents. */
import type { AgentStatus } from '../decision/facts.ts';
import type { McpAuthorisationTable } from './schema.ts';
import type { Db } from './store.ts';

/** Stores a consent that was just given. */
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

/** The authorisation, with its agent, as long as it is neither ended nor over, and its agent not stopped for good. */
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

/** Ends an authorisation, in one guarded statement. Answers whether it went on until now. */
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

export type ListedAuthorisation = McpAuthorisationTable & { agent_public_id: string; agent_name: string };

/** An organisation's authorisations, the newest first; those that ended stay for a while. */
export async function listMcpAuthorisations(db: Db, organisationId: string): Promise<ListedAuthorisation[]> {
  return await db
    .selectFrom('mcp_authorisations as m')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'm.organisation_id').onRef('a.id', '=', 'm.agent_id'),
    )
    .selectAll('m')
    .select(['a.agent_id as agent_public_id', 'a.name as agent_name'])
    .where('m.organisation_id', '=', organisationId)
    .orderBy('m.created_at', 'desc')
    .orderBy('m.id')
    .execute();
}

/** Forgets authorisations that were over before `before`. */
export async function purgeMcpAuthorisations(db: Db, before: number): Promise<void> {
  await db
    .deleteFrom('mcp_authorisations')
    .where((eb) => eb.or([eb('expires_at', '<', before), eb('ended_at', '<', before)]))
    .execute();
}
