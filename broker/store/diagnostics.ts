import type { DiagnosticTable } from './schema.ts';
import type { Db } from './store.ts';

/** Stores what an agent reported. */
export async function putDiagnostic(db: Db, diagnostic: DiagnosticTable): Promise<void> {
  await db.insertInto('diagnostics').values(diagnostic).execute();
}

/** An organisation's newest reports, newest first. Ids are UUIDv7, so their order is the order of time. */
export async function listDiagnostics(db: Db, organisationId: string, limit: number): Promise<DiagnosticTable[]> {
  return await db
    .selectFrom('diagnostics')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}
