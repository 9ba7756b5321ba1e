/** Reads rows of a receipt log in order, for exports and pushes. */
import { receiptOf } from '../audit/receipt.ts';
import { type AuditRow, findAuditRowsById } from '../store/audit.ts';
import { HASHED_COLUMNS } from '../store/audit-columns.ts';
import { findEntries } from '../store/receipt-logs.ts';
import type { Db } from '../store/store.ts';
import { TILE_WIDTH } from './merkle.ts';
import { type Entry, entriesIn } from './tree.ts';

/** A row with its index. `row`: the columns that its hash covers, as stored. */
export type LogRow = {
  type: 'row';
  index: number;
  row: Record<string, string | number | null>;
  row_hash: string;
  receipt: string | null;
};

/** A row and its index in the log. */
export type PlacedRow = { index: number; row: AuditRow };

/**
 * Returns the rows of entries whose first has index `start` in the log. Rows that do not exist any more are left out: their retention has
 * expired (purge.ts), or somebody deleted them in the database.
 */
export async function rowsOfEntries(
  db: Db,
  organisationId: string,
  entries: readonly Entry[],
  start: number,
): Promise<PlacedRow[]> {
  const ids = entries.map(({ id }) => id);
  const rows = new Map((await findAuditRowsById(db, organisationId, ids)).map((row) => [row.id, row]));
  return entries.flatMap(({ id }, at) => {
    const row = rows.get(id);
    return row ? { index: start + at, row } : [];
  });
}

/** Returns the entries of a log from `first` up to `end` or the end of the tile, whichever comes first; empty at the end of the log. */
export async function entriesFrom(db: Db, organisationId: string, first: number, end: number): Promise<Entry[]> {
  const tile = await findEntries(db, organisationId, Math.floor(first / TILE_WIDTH));
  const start = first - (first % TILE_WIDTH);
  return tile ? entriesIn(tile).slice(first - start, end - start) : [];
}

/** Returns a row as a line of an export. */
export const logRow = ({ index, row }: PlacedRow): LogRow => ({
  type: 'row',
  index,
  row: Object.fromEntries(HASHED_COLUMNS.map((column) => [column, row[column]])),
  row_hash: row.row_hash ?? '',
  receipt: receiptOf(row),
});
