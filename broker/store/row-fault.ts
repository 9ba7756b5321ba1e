/** SQLite's primary result codes that blame what was written: TOOBIG, CONSTRAINT, MISMATCH, RANGE. */
const SQLITE_ROW_FAULTS = new Set([18, 19, 20, 25]);

/**
 * Whether a write failed because of the very rows in it (a constraint, a value that the store cannot hold), so that the
 * same write can never succeed while others may. Anything else is the store's own trouble: it may pass.
 *
 * PostgreSQL classes 21 (one row twice in a statement), 22 (data), 23 (constraint), 42 (syntax, types) and 54 (limits); SQLite's codes; and errors thrown
 * here before anything was sent, such as a value that the driver does not take.
 */
export function isRowFault(error: unknown): boolean {
  if (error instanceof RowFault) return true;
  if (!(error instanceof Error)) return false;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof errcode === 'number') return SQLITE_ROW_FAULTS.has(errcode & 0xff);
  if (code === 'ERR_INVALID_ARG_TYPE' || code === 'ERR_INVALID_ARG_VALUE') return true;
  return typeof code === 'string' && /^(21|22|23|42|54)[0-9A-Z]{3}$/.test(code);
}

/** What `isRowFault` said yes to in another thread, or of a row that cannot even be signed. */
export class RowFault extends Error {}
