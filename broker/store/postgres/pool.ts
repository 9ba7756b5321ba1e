/** Connection pools for PostgreSQL. */
import pg from 'pg';
import { StoreUnavailable } from '../store-fault.ts';

const INT8 = 20;

/** Times are bigint milliseconds, far below 2^53: parsed as numbers, not as strings as pg does. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/** Timeout of a statement, shorter than the caller's own. */
export const STATEMENT_TIMEOUT_MS = 15_000;
/** Timeout of a new connection. */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Creates a pool of at most `max` connections, opened on demand. `onError` gets errors of idle connections, which the pool replaces.
 * `settings`: a statement that each new connection runs first. `ofStandby`: connections to a standby are accepted. The other options are
 * passed to pg.
 */
export function openPool(
  url: string,
  {
    onError,
    settings: own,
    ofStandby = false,
    ...options
  }: { max: number; onError(error: Error): void; settings?: string; ofStandby?: boolean } & pg.PoolConfig,
): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    types,
    application_name: 'agent-broker',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    ...options,
    onConnect: async (client) => {
      if (!ofStandby) await refuseStandby(client);
      if (own !== undefined) await client.query(own);
    },
  });
  pool.on('error', onError);
  // The pool handles errors of idle connections only. An error between two statements of a transaction would be an uncaught
  // exception; with a listener the next statement fails instead.
  pool.on('connect', (client) => client.on('error', () => {}));
  const settings = sessionSettings(options.query_timeout);
  pool.on('connect', (client) => client.query(settings).catch(() => {}));
  return pool;
}

/**
 * Throws on a connection to a standby. After a failover an address may still resolve to the former primary for a while (DNS), which is a standby
 * now: a kept connection could never write, and could read outdated data, such as an agent as not revoked yet.
 */
async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const asked = { text: 'select pg_is_in_recovery() as found', query_timeout: CONNECT_TIMEOUT_MS };
  const { rows } = await client.query<{ found: boolean }>(asked);
  if (rows[0]?.found) throw new StoreUnavailable('it is a standby, which accepts no writes');
}

/**
 * Session settings, independent of the defaults of server, database and role. Set by statements, because poolers refuse them as startup
 * parameters. The broker's statements lock and compare what they change, so `read committed` suffices; under `serializable` PostgreSQL would
 * cancel one of two concurrent changes that do not conflict. Waiting for a lock counts as time of the statement. `timeoutMs`: the client's
 * timeout of a statement.
 */
const sessionSettings = (timeoutMs: number | undefined): string =>
  [
    "set default_transaction_isolation = 'read committed'",
    'set lock_timeout = 0',
    ...(timeoutMs === undefined ? [] : [`set statement_timeout = ${timeoutMs}`]),
  ].join('; ');
