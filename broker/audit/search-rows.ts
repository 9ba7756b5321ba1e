/** Audit rows, as owners look for them and export them. */
import { setImmediate } from 'node:timers/promises';
import type { Broker } from '../broker.ts';
import { storedUuid } from '../crypto/ids.ts';
import { type AuditRow, findAuditRow } from '../store/audit.ts';
import { type AuditFilter, type Found, findAuditRows, firstIdOf } from '../store/audit-search.ts';

/** How often the store is asked for one page before it is answered with what was found. */
const MOST_LOOKS = 40;
/** After so long no further look begins, so that a page takes at most 100 ms: who asks goes on with the cursor. */
const LOOKING_MS = 25;
const EXPORT_PAGE = 100;

/** One row of an organisation; or undefined. */
export const readRow = (
  { store }: Pick<Broker, 'store'>,
  organisationId: string,
  id: string,
): Promise<AuditRow | undefined> => findAuditRow(store.db, organisationId, id);

/** Rows that are older are listed from where reports are read: those of pages before may have come a moment ago, and must not be passed over. */
const SETTLED_MS = 60_000;

/** A page, newest first; short, or empty, when the filter passes few: it is the last one only when `next` is null. */
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
  // An id that is copied is found at once, however long ago that was.
  const exact = filter.text === undefined || before !== undefined ? undefined : storedUuid(filter.text);
  const row = exact ? await findAuditRow(db, organisationId, exact) : undefined;
  if (row) return { rows: [row], next: null };
  for (let looks = 0; looks < MOST_LOOKS; looks++) {
    const beyond = page.reached ?? undefined;
    const wanted = { order: 'newest_first', beyond, limit: limit - page.rows.length } as const;
    const found = await findAuditRows(db, organisationId, filter, wanted);
    page.rows.push(...found.rows);
    page.reached = found.reached;
    if (found.reached === null || page.rows.length === limit) break;
    if (performance.now() - begun > LOOKING_MS) break;
    // SQLite answers at once: let others have their turn.
    await setImmediate();
  }
  return { rows: page.rows, next: page.reached };
}

/** All final rows that there are now, oldest first, in groups; after the row `after`, if it is given. */
export async function* exportRows(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  filter: AuditFilter,
  after: string | undefined,
): AsyncGenerator<AuditRow[]> {
  // What comes while it is read is the next export's: otherwise a busy broker's would have no end.
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
