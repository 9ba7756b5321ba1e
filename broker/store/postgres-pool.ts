/** Pools of connections to PostgreSQL. */
import pg from 'pg';

const INT8 = 20;

/** Moments are bigint milliseconds, far below 2^53: numbers, not pg's strings. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/** A statement that the server does not answer must end before the caller's patience does. */
export const STATEMENT_TIMEOUT_MS = 15_000;

/**
 * A pool of at most `max` connections; none is made before the first statement. `onError` hears of a connection that broke
 * while idle; the pool replaces it by itself. The rest goes to pg as it is.
 */
export function openPool(
  url: string,
  { onError, ...options }: { max: number; onError(error: Error): void } & pg.PoolConfig,
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    types,
    application_name: 'agent-broker',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    ...options,
  });
  pool.on('error', onError);
  // The pool listens only while a connection is idle. One that breaks between two statements of a transaction would
  // otherwise be an uncaught exception, and the end of the process; so the next statement on it fails instead.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
