/** Search and export of audit rows for owners. */
import { setImmediate } from 'node:timers/promises';
import type { Broker } from '../broker.ts';
import { storedUuid } from '../crypto/ids.ts';
import { type AuditRow, findAuditRow } from '../store/audit.ts';
import { type AuditFilter, type Found, findAuditRows, firstIdOf } from '../store/audit-search.ts';

/** Limit of queries for one page; the page then has what was found so far. */
const MAX_QUERIES = 40;
/** No further query starts after this many milliseconds, so that a page takes at most 100 ms: the client continues with the cursor. */
const QUERYING_MS = 25;
const EXPORT_PAGE = 100;

/** Returns one row of an organisation; undefined when there is none. */
export const readRow = (
  { store }: Pick<Broker, 'store'>,
  organisationId: string,
  id: string,
): Promise<AuditRow | undefined> => findAuditRow(store.db, organisationId, id);

/** Pages of rows older than this are read from the standby, if there is one, which may lag. Newer rows might be skipped there. */
const SETTLED_MS = 60_000;

/** Returns a page, newest first. It may be short or empty when few rows match: only `next` null marks the last page. */
export async function searchRows(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  filter: AuditFilter,
  { limit, before }: { limit: number; before: string | undefined },
): Promise<{ rows: AuditRow[]; next: string | null }> {
  const page: Found = { rows: [], reached: before ?? null };
  const begun = performance.now();
  const isSettled = before !== undefined && before < firstIdOf(clock() - SETTLED_MS);
  const db = isSettled ? await store.reports() : store.db;
  // A pasted id is looked up directly, however old the row is.
  const exact = filter.text === undefined || before !== undefined ? undefined : storedUuid(filter.text);
  const row = exact ? await findAuditRow(db, organisationId, exact) : undefined;
  if (row && passes(row, filter)) return { rows: [row], next: null };
  for (let queries = 0; queries < MAX_QUERIES; queries++) {
    const beyond = page.reached ?? undefined;
    const wanted = { order: 'newest_first', beyond, limit: limit - page.rows.length } as const;
    const found = await findAuditRows(db, organisationId, filter, wanted);
    page.rows.push(...found.rows);
    page.reached = found.reached;
    if (found.reached === null || page.rows.length === limit) break;
    if (performance.now() - begun > QUERYING_MS) break;
    // SQLite queries run synchronously: yield to other requests.
    await setImmediate();
  }
  return { rows: page.rows, next: page.reached };
}

/** Whether a row passes all of the filter but its text. */
const passes = (row: AuditRow, { agent, platform, kind, result, reason, since, until }: AuditFilter): boolean =>
  (agent === undefined || row.agent_id === agent || row.agent_public_id === agent) &&
  (platform === undefined || row.platform_id === platform) &&
  (kind === undefined || row.kind === kind) &&
  (result === undefined || row.result === result) &&
  (reason === undefined || row.reason === reason) &&
  (since === undefined || row.created_at >= since) &&
  (until === undefined || row.created_at < until);

/** Yields all final rows that exist now, oldest first, in groups; only rows after the row `after`, if given. */
export async function* exportRows(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  filter: AuditFilter,
  after: string | undefined,
): AsyncGenerator<AuditRow[]> {
  // Rows added during the export are left to the next one: on a busy broker this one would never end.
  const until = Math.min(filter.until ?? Number.POSITIVE_INFINITY, clock() + 1);
  const db = await store.reports();
  let beyond = after;
  do {
    const page = { order: 'oldest_first', beyond, limit: EXPORT_PAGE } as const;
    const found: Found = await findAuditRows(db, organisationId, { ...filter, until, final: true }, page);
    yield found.rows;
    beyond = found.reached ?? undefined;
    await setImmediate();
  } while (beyond !== undefined);
}
