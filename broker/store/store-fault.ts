/** Classifies errors of the store: outage, or conflict of concurrent transactions. */

/** Connection loss or timeout, for which the driver's errors have no code. */
export class StoreUnavailable extends Error {}

/** The data that was read changed on each attempt before it could be acted on. Nothing was changed or sent; the request may be retried. */
export class ConcurrentUpdate extends Error {}

/** Converts a driver error without SQLSTATE or socket error code to StoreUnavailable. */
export function withFault(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  return error instanceof Error && code === undefined ? new StoreUnavailable(error.message, { cause: error }) : error;
}

/**
 * Converts an error of opening a connection to an outage, whatever its code: no statement was sent. Besides the classes of `isStoreOutage` it is a
 * database that accepts no connections (55000), a role without the right to connect (42501), or a certificate that has expired.
 */
export function connectionFault(error: unknown): unknown {
  const fault = withFault(error);
  if (!(fault instanceof Error) || isStoreOutage(fault)) return fault;
  const { code } = fault as { code?: unknown };
  return Object.assign(new StoreUnavailable(fault.message, { cause: error }), { code });
}

/**
 * Whether the store is unavailable: PostgreSQL classes 08 (connection), 53 (resources) and 57 (operator), 25006 (read-only), 25P03 (idle in a
 * transaction for longer than the server allows), 55P03 (`lock_timeout`), 28 and 3D (the role or the database does not exist, as while a
 * server is being replaced), Node's errors of sockets, names and file descriptors, SQLite's own.
 */
export function isStoreOutage(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return true;
  const { code } = error as { code?: unknown };
  return (
    typeof code === 'string' &&
    /^(08|53|57|25006|25P03|55P03|28|3D)|^E(CONN|PIPE|TIMEDOUT|HOST|NET|AI_AGAIN|NOTFOUND|ADDRNOTAVAIL|[MN]FILE)|^ERR_SQLITE/.test(
      code,
    )
  );
}

/** Whether the connection is read-only: by `default_transaction_read_only`, or because the server is a standby. */
export const isReadOnlySession = (error: unknown): boolean =>
  (error as { code?: unknown } | undefined)?.code === '25006';

/** PostgreSQL class 40 (serialisation failure, deadlock: rolled back because of a concurrent transaction), or ConcurrentUpdate. */
export const isConflict = (error: unknown): boolean =>
  error instanceof ConcurrentUpdate || /^40[0-9A-Z]{3}$/.test(String((error as { code?: unknown } | undefined)?.code));
