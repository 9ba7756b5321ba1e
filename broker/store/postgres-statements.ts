/** Prepared statements on PostgreSQL, on connections that are kept for them. */
import type pg from 'pg';
import { CopyIn, copyText } from './postgres-copy.ts';
import { openPool, STATEMENT_TIMEOUT_MS } from './postgres-pool.ts';
import { StoreUnavailable, withFault } from './store-fault.ts';

export type PreparedStatements = {
  /**
   * Runs one, which is prepared under its name, and answers rows as lists of values. Rejects as PostgreSQL does, or when it
   * has not answered in time.
   */
  run<Row extends unknown[]>(statement: { name: string; text: string; values: unknown[] }): Promise<Row[]>;
  /** Runs a `copy … from stdin` with these rows, all or none. Rejects likewise. */
  copy(statement: string, rows: readonly (readonly unknown[])[]): Promise<void>;
  close(): Promise<void>;
};

/**
 * At most `max` connections. They stay for good, because a new one has to prepare everything again, just when a call comes
 * after a pause. `onError` hears of one that broke while idle; it is replaced by itself.
 */
export function openPreparedStatements(
  url: string,
  { max, onError, timeoutMs = STATEMENT_TIMEOUT_MS }: { max: number; onError(error: Error): void; timeoutMs?: number },
): PreparedStatements {
  const pool = openPool(url, {
    max,
    onError,
    idleTimeoutMillis: 0,
    // PostgreSQL would plan the facts query anew each time, for five milliseconds: it thinks a plan that fits all lists of
    // questions dearer than one that is made for this list.
    onConnect: (client) => client.query('set plan_cache_mode = force_generic_plan'),
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
 * As `pool.query` with a `query_timeout`, but for what that leaves behind: pg hangs a function on every statement that has
 * one, and V8 puts a function that is written into a property among the old objects, where it keeps all that it knows (the
 * values, and the calls they are of) until a full collection. An eighth of what a call cost was carrying them there.
 */
function withConnection<Answer>(
  pool: pg.Pool,
  timeoutMs: number,
  ask: (client: pg.PoolClient, end: (error: Error | null, answer?: Answer) => void) => void,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    pool.connect((unconnected, client) => {
      if (!client) return reject(withFault(unconnected));
      const timer = setTimeout(
        () => end(new StoreUnavailable('PostgreSQL did not answer the statement in time')),
        timeoutMs,
      );
      let ended = false;
      const end = (error: Error | null, answer?: Answer): void => {
        // A connection that is given up reports the statement that it still had.
        if (ended) return;
        ended = true;
        clearTimeout(timer);
        // With an error it is closed: whatever it may still say is of no statement any more.
        client.release(error ?? undefined);
        if (error) reject(withFault(error));
        else resolve(answer as Answer);
      };
      ask(client, end);
    });
  });
}
