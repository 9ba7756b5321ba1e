/** The shared store: PostgreSQL 15 or later through `pg`, for any number of replicas. */
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { makeNotices } from './notices.ts';
import type { Schema } from './schema.ts';
import { bind, type Prepared, type Store, type Values } from './store.ts';

const INT8 = 20;

/** Moments are bigint milliseconds, far below 2^53: numbers, not pg's strings. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/** One for each statement of the hot path that can be under way: facts on one and on all platforms, and rows. */
const HOT_CONNECTIONS = 3;

/**
 * Opens at most `connections`. Nothing is connected before the first statement.
 * `onError` hears of a connection that broke while idle; the pool replaces it by itself.
 *
 * Prepared statements have connections of their own: no slow question of an owner keeps a call waiting, and PostgreSQL
 * keeps few copies of their plans.
 */
export function openPostgres(url: string, options: { connections: number; onError(error: Error): void }): Store {
  const hotConnections = Math.min(HOT_CONNECTIONS, options.connections - 1);
  const settings: pg.PoolConfig = {
    connectionString: url,
    types,
    application_name: 'agent-broker',
    connectionTimeoutMillis: 5_000,
    // A statement that the server does not answer must end before the caller's patience does.
    query_timeout: 15_000,
    keepAlive: true,
  };
  const pool = new pg.Pool({ ...settings, max: options.connections - hotConnections });
  const hot = new pg.Pool({
    ...settings,
    max: hotConnections,
    // Kept for good: a new one has to prepare everything again, just when a call comes after a pause.
    idleTimeoutMillis: 0,
    // PostgreSQL would plan the facts query anew each time, for five milliseconds: it thinks a plan that fits all lists
    // of questions dearer than one that is made for this list.
    onConnect: (client) => client.query('set plan_cache_mode = force_generic_plan'),
  });
  for (const each of [pool, hot]) {
    each.on('error', options.onError);
    // The pool listens only while a connection is idle. One that breaks between two statements of a transaction would
    // otherwise be an uncaught exception, and the end of the process; so the next statement on it fails instead.
    each.on('connect', (client) => client.on('error', () => {}));
  }
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  const configOf = (statement: Prepared, rows: readonly Values[]) => {
    return { name: statement.name, text: statement.sql, values: bind(statement, rows) };
  };
  return {
    dialect: 'postgres',
    bytes: 'bytea',
    db,
    read: async (statement, values) =>
      (await hot.query<unknown[]>({ ...configOf(statement, [values]), rowMode: 'array' })).rows,
    write: async <Row>(statementFor: (rows: number) => Prepared<Row>, rows: readonly Values[]) =>
      (await hot.query(configOf(statementFor(rows.length), rows))).rows as Row[],
    notices: makeNotices({
      connectionString: url,
      application_name: 'agent-broker notices',
      connectionTimeoutMillis: 5_000,
      keepAlive: true,
    }),
    close: async () => {
      await hot.end();
      await db.destroy();
    },
  };
}
