/** What agents report of answers that they did not expect. Ids are UUIDv7, so their order is the order of time. */
import { firstIdOf } from './audit-search.ts';
import type { DiagnosticTable } from './schema.ts';
import type { Db } from './store.ts';

/** Stores what an agent reported. */
export async function putDiagnostic(db: Db, diagnostic: DiagnosticTable): Promise<void> {
  await db.insertInto('diagnostics').values(diagnostic).execute();
}

/** How much an agent has reported since a moment. */
export async function countDiagnostics(
  db: Db,
  agent: { organisationId: string; id: string },
  since: number,
): Promise<number> {
  const { count } = await db
    .selectFrom('diagnostics')
    .select((eb) => eb.fn.countAll<number | string>().as('count'))
    .where('organisation_id', '=', agent.organisationId)
    .where('id', '>=', firstIdOf(since))
    .where('received_at', '>=', since)
    .where('agent_id', '=', agent.id)
    .executeTakeFirstOrThrow();
  return Number(count);
}

export type ReportedDiagnostic = DiagnosticTable & { agent_public_id: string | null; agent_name: string | null };

/** An organisation's reports, newest first, with whose they are: of one agent, or those from before one of them. */
export async function listDiagnostics(
  db: Db,
  organisationId: string,
  { limit, agentUuid, before }: { limit: number; agentUuid?: string | undefined; before?: string | undefined },
): Promise<ReportedDiagnostic[]> {
  let query = db
    .selectFrom('diagnostics')
    .leftJoin('agents', (join) =>
      join
        .onRef('agents.organisation_id', '=', 'diagnostics.organisation_id')
        .onRef('agents.id', '=', 'diagnostics.agent_id'),
    )
    .selectAll('diagnostics')
    .select(['agents.agent_id as agent_public_id', 'agents.name as agent_name'])
    .where('diagnostics.organisation_id', '=', organisationId);
  if (agentUuid !== undefined) query = query.where('diagnostics.agent_id', '=', agentUuid);
  if (before !== undefined) query = query.where('diagnostics.id', '<', before);
  return await query.orderBy('diagnostics.id', 'desc').limit(limit).execute();
}

/** Forgets reports from before a moment. */
export async function purgeDiagnostics(db: Db, before: number): Promise<void> {
  await db.deleteFrom('diagnostics').where('received_at', '<', before).execute();
}
