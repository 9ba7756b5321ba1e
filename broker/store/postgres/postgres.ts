/** The shared store: PostgreSQL 15 or later through `pg`, for any number of replicas. */
import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient, type PostgresQueryResult } from 'kysely';
import type pg from 'pg';
import { makeNotices } from '../notices.ts';
import { RowFault } from '../row-fault.ts';
import type { Schema } from '../schema.ts';
import { type Side, type StandbyWatch, standbyReads } from '../standby.ts';
import { bind, type Store } from '../store.ts';
import { connectionFault, isReadOnlySession, withFault } from '../store-fault.ts';
import { openPool, STATEMENT_TIMEOUT_MS } from './pool.ts';
import { openPreparedStatements } from './statements.ts';

/** With fewer connections, one is used for facts instead of two. */
const MIN_FOR_TWO_FACTS_CONNECTIONS = 6;
/** With fewer connections, single rows go through the recording thread. */
const MIN_FOR_SINGLE_ROW_CONNECTION = 8;
/** Connections to a standby. */
const STANDBY_CONNECTIONS = 4;

/**
 * Opens at most `connections`, at least 3, on demand. `onError` gets errors of idle connections, which the pool replaces. `timeoutMs`: timeout of
 * a statement. `standby`: where reports are read while it keeps up.
 *
 * Prepared statements have dedicated connections, so that slow owner queries do not delay calls, and PostgreSQL keeps few copies of their
 * plans: two for facts (one platform, all platforms), one for appending batches, and one for appending single rows.
 */
export function openPostgres(
  url: string,
  options: {
    connections: number;
    timeoutMs?: number;
    onError(error: Error): void;
    standby?: { url: string; watch: StandbyWatch } | undefined;
  },
): Store {
  const { onError, timeoutMs = STATEMENT_TIMEOUT_MS } = options;
  const asking = options.connections >= MIN_FOR_TWO_FACTS_CONNECTIONS ? 2 : 1;
  const here = options.connections >= MIN_FOR_SINGLE_ROW_CONNECTION ? 1 : 0;
  const pool = openPool(url, {
    max: Math.max(1, options.connections - asking - 1 - here),
    query_timeout: timeoutMs,
    onError,
  });
  const hot = openPreparedStatements(url, { max: asking, onError });
  const sideOf = (opened: pg.Pool): Side => {
    const its = withFaults(opened);
    return { pool: its, db: dbOn(its) };
  };
  const primary = sideOf(pool);
  const { db } = primary;
  const standby =
    options.standby &&
    sideOf(
      openPool(options.standby.url, { max: STANDBY_CONNECTIONS, ofStandby: true, query_timeout: timeoutMs, onError }),
    );
  const standbyPool = options.standby && standby && standbyReads(primary, standby, options.standby.watch);
  return {
    dialect: 'postgres',
    bytes: 'bytea',
    db,
    read: async (statement, values) => {
      const { name, sql: text } = statement;
      return await hot.run({ name, text, values: bind(statement, values) });
    },
    reports: async () => {
      const reading = await standbyPool?.();
      return reading ? dbOn(reading) : db;
    },
    appendTo: { dialect: 'postgres', url, connections: 1 },
    ...(here > 0 && { appendHere: { dialect: 'postgres', url, connections: here } }),
    exclusively: async (work) => await work(),
    untimed: () => {
      const its = dbOn(withFaults(openPool(url, { max: 2, onError })));
      return { db: its, close: () => its.destroy() };
    },
    notices: makeNotices({
      connectionString: url,
      application_name: 'agent-broker notices',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
    }),
    load: () => ({
      dialect: 'postgres',
      connections: pool.totalCount,
      inUse: pool.totalCount - pool.idleCount,
      waiting: pool.waitingCount,
      most: pool.options.max,
    }),
    close: async () => {
      await hot.close();
      await db.destroy();
      await standby?.db.destroy();
    },
  };
}

const dbOn = (pool: PostgresPool) => new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });

/** The protocol has 16 bits for the number of parameters; the driver would send a wrong number for more. */
const MAX_PARAMETERS = 65_535;

/** The pool for Kysely, with errors classified by `withFault` and `connectionFault`. */
function withFaults(pool: pg.Pool): PostgresPool {
  const faulty = (error: unknown): never => {
    throw withFault(error);
  };
  // Kysely tracks connections by object identity.
  const known = new WeakMap<pg.PoolClient, PostgresPoolClient>();
  const wrap = (client: pg.PoolClient): PostgresPoolClient => {
    let isReadOnly = false;
    const failed = (error: unknown): never => {
      isReadOnly ||= isReadOnlySession(error);
      return faulty(error);
    };
    const query = (text: string, values: readonly unknown[]): Promise<PostgresQueryResult<unknown>> =>
      values.length > MAX_PARAMETERS
        ? Promise.reject(new RowFault(`a statement with ${values.length} parameters`))
        : (client.query(text, [...values]) as unknown as Promise<PostgresQueryResult<unknown>>).catch(failed);
    // A connection opened while the database was read-only stays read-only, so it is closed instead of reused.
    return {
      query: query as PostgresPoolClient['query'],
      release: (destroy) => client.release(destroy || isReadOnly),
    };
  };
  return {
    options: pool.options,
    connect: async () => {
      const client = await pool.connect().catch((error: unknown) => {
        throw connectionFault(error);
      });
      const wrapped = known.get(client) ?? wrap(client);
      known.set(client, wrapped);
      return wrapped;
    },
    end: () => pool.end(),
  };
}
