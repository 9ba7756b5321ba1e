/** Pools of connections to PostgreSQL. */
import pg from 'pg';

const INT8 = 20;

/** Moments are bigint milliseconds, far below 2^53: numbers, not pg's strings. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/**
 * A pool of at most `max` connections; none is made before the first statement. `keep`: for prepared statements, whose
 * connections stay for good, because a new one has to prepare everything again, just when a call comes after a pause.
 * `onError` hears of a connection that broke while idle; the pool replaces it by itself.
 */
export function openPool(
  url: string,
  { max, keep, onError }: { max: number; keep: boolean; onError(error: Error): void },
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    types,
    application_name: 'agent-broker',
    connectionTimeoutMillis: 5_000,
    // A statement that the server does not answer must end before the caller's patience does.
    query_timeout: 15_000,
    keepAlive: true,
    max,
    ...(keep && {
      idleTimeoutMillis: 0,
      // PostgreSQL would plan the facts query anew each time, for five milliseconds: it thinks a plan that fits all lists
      // of questions dearer than one that is made for this list.
      onConnect: (client) => client.query('set plan_cache_mode = force_generic_plan'),
    }),
  });
  pool.on('error', onError);
  // The pool listens only while a connection is idle. One that breaks between two statements of a transaction would
  // otherwise be an uncaught exception, and the end of the process; so the next statement on it fails instead.
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}
