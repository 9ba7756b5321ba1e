/** Agents' reports of unexpected responses. Ids are UUIDv7, so they sort by time. */
import { firstIdOf } from './audit-search.ts';
import type { Db } from './store.ts';
import type { DiagnosticTable } from './tables/agents.ts';

/** Stores a report. */
export async function putDiagnostic(db: Db, diagnostic: DiagnosticTable): Promise<void> {
  await db.insertInto('diagnostics').values(diagnostic).execute();
}

/** Counts the reports of an agent and its children, including ended ones, since a time. */
export async function countDiagnostics(
  db: Db,
  familyRoot: { organisationId: string; id: string },
  since: number,
): Promise<number> {
  const { count } = await db
    .selectFrom('diagnostics as d')
    .innerJoin('agents as a', (join) =>
      join.onRef('a.organisation_id', '=', 'd.organisation_id').onRef('a.id', '=', 'd.agent_id'),
    )
    .select((eb) => eb.fn.countAll<number | string>().as('count'))
    .where('d.organisation_id', '=', familyRoot.organisationId)
    .where('d.id', '>=', firstIdOf(since))
    .where('d.received_at', '>=', since)
    .where((eb) => eb.or([eb('a.id', '=', familyRoot.id), eb('a.parent_id', '=', familyRoot.id)]))
    .executeTakeFirstOrThrow();
  return Number(count);
}

export type ReportedDiagnostic = DiagnosticTable & { agent_public_id: string | null; agent_name: string | null };

/** An organisation's reports with their agents, newest first; optionally of one agent, or before a report (cursor). */
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

/** Deletes reports from before a time. */
export async function purgeDiagnostics(db: Db, before: number): Promise<void> {
  await db.deleteFrom('diagnostics').where('received_at', '<', before).execute();
}
