/** Prepared statements on PostgreSQL, on dedicated connections. */
import type pg from 'pg';
import { connectionFault, StoreUnavailable, withFault } from '../store-fault.ts';
import { CopyIn, copyText } from './copy.ts';
import { openPool, STATEMENT_TIMEOUT_MS } from './pool.ts';

export type PreparedStatements = {
  /**
   * Runs a statement, prepared under its name, and returns rows as lists of values. Rejects with PostgreSQL's error, or on
   * timeout.
   */
  run<Row extends unknown[]>(statement: { name: string; text: string; values: unknown[] }): Promise<Row[]>;
  /** Runs a `copy … from stdin` with these rows, all or none. Rejects in the same cases. */
  copy(statement: string, rows: readonly (readonly unknown[])[]): Promise<void>;
  close(): Promise<void>;
};

/**
 * Opens at most `max` connections, which are never closed when idle, because a new one has to prepare all statements again. `onError` gets
 * errors of idle connections, which are replaced.
 */
export function openPreparedStatements(
  url: string,
  { max, onError, timeoutMs = STATEMENT_TIMEOUT_MS }: { max: number; onError(error: Error): void; timeoutMs?: number },
): PreparedStatements {
  const pool = openPool(url, {
    max,
    onError,
    idleTimeoutMillis: 0,
    // Otherwise PostgreSQL would plan the facts query on each execution, in five milliseconds, because it estimates the generic plan to be
    // more expensive than a custom one.
    settings: 'set plan_cache_mode = force_generic_plan',
  });
  return {
    run: <Row extends unknown[]>(statement: pg.QueryConfig & { values: unknown[] }) =>
      withConnection<Row[]>(pool, timeoutMs, (client, end) => {
        client.query<Row>({ ...statement, rowMode: 'array' }, (error, result) => end(error, result?.rows));
      }),
    copy: (statement, rows) =>
      withConnection<void>(pool, timeoutMs, (client, end) => {
        client.query(new CopyIn(statement, copyText(rows), end));
      }),
    close: async () => await pool.end(),
  };
}

/**
 * Like `pool.query` with a `query_timeout`, without its garbage: pg assigns a closure to a property of every statement with a
 * timeout, and V8 allocates such closures in the old generation, where they retain the values and the call until a full garbage
 * collection. That was an eighth of the cost of a call.
 */
function withConnection<Answer>(
  pool: pg.Pool,
  timeoutMs: number,
  ask: (client: pg.PoolClient, end: (error: Error | null, answer?: Answer) => void) => void,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    pool.connect((unconnected, client) => {
      if (!client) return reject(connectionFault(unconnected));
      const timer = setTimeout(
        () => end(new StoreUnavailable('PostgreSQL did not answer the statement in time')),
        timeoutMs,
      );
      let ended = false;
      const end = (error: Error | null, answer?: Answer): void => {
        // Destroying the connection makes its pending statement fail, which has timed out already.
        if (ended) return;
        ended = true;
        clearTimeout(timer);
        // With an error the connection is closed, because its state is unknown.
        client.release(error ?? undefined);
        if (error) reject(withFault(error));
        else resolve(answer as Answer);
      };
      ask(client, end);
    });
  });
}
