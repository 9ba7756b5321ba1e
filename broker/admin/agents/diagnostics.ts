/** Agents' reports of unexpected answers (specification, Agent identity and self-service), for their owners. */
import type { Broker } from '../../broker.ts';
import { uuidv7 } from '../../crypto/ids.ts';
import { findAgent } from '../../store/agents.ts';
import { countDiagnostics, listDiagnostics, putDiagnostic, type ReportedDiagnostic } from '../../store/diagnostics.ts';
import type { AgentTable, DiagnosticTable } from '../../store/tables/agents.ts';

/** Limit per agent and its children per day; more would fill the store. */
export const MAX_REPORTS_PER_DAY = 500;
const DAY_MS = 24 * 3_600_000;

/** `context`: JSON text. */
export type Report = Omit<DiagnosticTable, 'organisation_id' | 'id' | 'agent_id' | 'received_at'>;

/** Stores a report. Undefined when the family has reached its limit of the day. */
export async function storeReport(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  { id: agentUuid, parent_id, organisation_id }: Pick<AgentTable, 'id' | 'parent_id' | 'organisation_id'>,
  report: Report,
): Promise<{ id: string; received_at: number } | undefined> {
  const now = clock();
  const familyRoot = { organisationId: organisation_id, id: parent_id ?? agentUuid };
  if ((await countDiagnostics(db, familyRoot, now - DAY_MS)) >= MAX_REPORTS_PER_DAY) return undefined;
  const stored = { organisation_id, id: uuidv7(now), agent_id: agentUuid, received_at: now };
  await putDiagnostic(db, { ...report, ...stored });
  return stored;
}

/** Returns a page of reports, newest first; they are deleted after 30 days. `agent`: filters by agent, given as uuid or agent id. */
export async function listReports(
  { store: { db } }: Pick<Broker, 'store'>,
  organisationId: string,
  { agent: named, limit, before }: { agent: string | undefined; limit: number; before: string | undefined },
): Promise<{ reports: ReportedDiagnostic[]; next: string | null }> {
  const agent = named === undefined ? undefined : await findAgent(db, organisationId, named);
  if (named !== undefined && !agent) return { reports: [], next: null };
  const rows = await listDiagnostics(db, organisationId, { limit: limit + 1, agentUuid: agent?.id, before });
  const reports = rows.slice(0, limit);
  return { reports, next: rows.length > limit ? (reports.at(-1)?.id ?? null) : null };
}
