/** SQLite's primary result codes for invalid rows: TOOBIG, CONSTRAINT, MISMATCH, RANGE. */
const SQLITE_ROW_FAULTS = new Set([18, 19, 20, 25]);

/**
 * Whether a write failed because of the rows in it (a constraint, a value that the store cannot represent), so that a retry would fail, too,
 * while other writes may succeed. Any other error may be temporary.
 *
 * PostgreSQL classes 21 (one row twice in a statement), 22 (data), 23 (constraint), 42 (syntax, types) and 54 (limits); SQLite's codes; and
 * errors thrown before anything was sent: a value that the driver does not support, or a bug in the code that writes.
 */
export function isRowFault(error: unknown): boolean {
  if (error instanceof RowFault || error instanceof TypeError || error instanceof RangeError) return true;
  if (!(error instanceof Error)) return false;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof errcode === 'number')
    return SQLITE_ROW_FAULTS.has(errcode & 0xff) || error.message === 'too many SQL variables';
  if (code === 'ERR_INVALID_ARG_TYPE' || code === 'ERR_INVALID_ARG_VALUE') return true;
  return typeof code === 'string' && /^(21|22|23|42|54)[0-9A-Z]{3}$/.test(code);
}

/** A row fault in another thread, a row that cannot be signed, or one that was not written because its organisation writes too much. */
export class RowFault extends Error {}
