/** Evidence of whether a connection works: its last test, and recent audit rows of calls on it. */
import type { AuditRow } from './audit.ts';
import type { Db } from './store.ts';
import type { ConnectionTable } from './tables/connections.ts';
import type { TokenPlace } from './upstream-tokens.ts';

export type StoredTest = { at: number; revision: number; ok: boolean; upstreamStatus: number | null; detail: string };

/** Stores the result of a test. No effect if the connection was deleted. */
export async function storeTest(
  db: Db,
  { organisation_id: organisationId, id }: Pick<ConnectionTable, 'organisation_id' | 'id'>,
  { at, revision, ok, upstreamStatus, detail }: StoredTest,
): Promise<void> {
  await db
    .updateTable('connections')
    .set({
      tested_at: at,
      tested_revision: revision,
      tested_ok: ok ? 1 : 0,
      tested_status: upstreamStatus,
      tested_detail: detail,
    })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .execute();
}

/** How many rows are scanned. There is no index by connection: every call would have to write it. */
const SCANNED_ROWS = 1_000;

export type RecentRow = Pick<
  AuditRow,
  'kind' | 'created_at' | 'connection_id' | 'result' | 'reason' | 'upstream_status' | 'flags'
>;

/** The newest rows of an organisation that are about a connection, or an apply of a governance file; newest first. */
export async function listRecentRows(db: Db, organisationId: string): Promise<RecentRow[]> {
  const newest = await db
    .selectFrom('audit_rows')
    .select(['kind', 'created_at', 'connection_id', 'result', 'reason', 'upstream_status', 'flags'])
    .where('organisation_id', '=', organisationId)
    .orderBy('id', 'desc')
    .limit(SCANNED_ROWS)
    .execute();
  return newest.filter(({ connection_id, reason }) => connection_id !== null || reason === 'governance_applied');
}

type Failing = Pick<ConnectionTable, 'failing' | 'attention'>;

/**
 * Stores why a connection gets no token: `change` receives the stored JSON and returns the new one. When it gets one again, null, it no longer needs
 * to be connected again. Concurrent changes may overwrite each other.
 */
export async function changeFailing(
  db: Db,
  { organisationId, connectionId }: Pick<TokenPlace, 'organisationId' | 'connectionId'>,
  change: (failing: string | null) => Failing,
): Promise<void> {
  const found = await db
    .selectFrom('connections')
    .select('failing')
    .where('organisation_id', '=', organisationId)
    .where('id', '=', connectionId)
    .executeTakeFirst();
  if (!found) return;
  const { failing, attention } = change(found.failing);
  if (failing === found.failing) return;
  await db
    .updateTable('connections')
    .set({ failing, attention, ...(failing === null && { status: 'active' as const }) })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', connectionId)
    .execute();
}
