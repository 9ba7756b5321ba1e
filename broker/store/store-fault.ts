/** What an error of the store means: whether it is away, or was in somebody else's way. */

/** The driver lost the store, or had no answer in time: what it throws then has no code of its own. */
export class StoreUnavailable extends Error {}

/** What the driver threw, made a StoreUnavailable when no server said it and no socket: PostgreSQL's errors have a SQLSTATE. */
export function withFault(error: unknown): unknown {
  const { code } = error as { code?: unknown };
  return error instanceof Error && code === undefined ? new StoreUnavailable(error.message, { cause: error }) : error;
}

/**
 * Whether the store cannot be used now: PostgreSQL classes 08 (connection), 53 (resources) and 57 (operator), 25006 (read-only),
 * Node's socket errors, SQLite's own.
 */
export function isStoreOutage(error: unknown): boolean {
  if (error instanceof StoreUnavailable) return true;
  const { code } = error as { code?: unknown };
  return (
    typeof code === 'string' && /^(08|53|57|25006)|^E(CONN|PIPE|TIMEDOUT|HOSTUNREACH|AI_AGAIN)|^ERR_SQLITE/.test(code)
  );
}

/** PostgreSQL class 40: of two transactions that were in each other's way it undid this one. */
export const isConflict = (error: unknown): boolean =>
  /^40[0-9A-Z]{3}$/.test(String((error as { code?: unknown } | undefined)?.code));
