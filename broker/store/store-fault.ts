/** Classifies errors of the store: outage, or conflict of concurrent transactions. */

/** Connection loss or timeout, for which the driver's errors have no code. */
export class StoreUnavailable extends Error {}

/** Converts a driver error without SQLSTATE or socket error code to StoreUnavailable. */
export function withFault(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  return error instanceof Error && code === undefined ? new StoreUnavailable(error.message, { cause: error }) : error;
}

/**
 * Whether the store is unavailable: PostgreSQL classes 08 (connection), 53 (resources) and 57 (operator), 25006 (read-only),
 * Node's socket errors, SQLite's own.
 */
export function isStoreOutage(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return true;
  const { code } = error as { code?: unknown };
  return (
    typeof code === 'string' && /^(08|53|57|25006)|^E(CONN|PIPE|TIMEDOUT|HOSTUNREACH|AI_AGAIN)|^ERR_SQLITE/.test(code)
  );
}

/** PostgreSQL class 40 (serialisation failure, deadlock): this transaction was rolled back because of a concurrent one. */
export const isConflict = (error: unknown): boolean =>
  /^40[0-9A-Z]{3}$/.test(String((error as { code?: unknown } | undefined)?.code));
