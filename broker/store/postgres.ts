/** The shared store: PostgreSQL 15 or later through `pg`, for any number of replicas. */
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Schema } from './schema.ts';
import { bind, type Prepared, type Store, type Values } from './store.ts';

const INT8 = 20;

/** Moments are bigint milliseconds, far below 2^53: numbers, not pg's strings. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary' ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/**
 * Opens a pool of at most `connections`. Nothing is connected before the first statement.
 * `onError` hears of a connection that broke while idle; the pool replaces it by itself.
 */
export function openPostgres(url: string, options: { connections: number; onError(error: Error): void }): Store {
  const pool = new pg.Pool({
    connectionString: url,
    max: options.connections,
    types,
    application_name: 'agent-broker',
    connectionTimeoutMillis: 5_000,
    // A statement that the server does not answer must end before the caller's patience does.
    query_timeout: 15_000,
    keepAlive: true,
  });
  pool.on('error', options.onError);
  // The pool listens only while a connection is idle. One that breaks between two statements of a transaction would
  // otherwise be an uncaught exception, and the end of the process; so the next statement on it fails instead.
  pool.on('connect', (client) => client.on('error', () => {}));
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) });
  const query = async <Row>(statement: Prepared<Row>, rows: readonly Values[]): Promise<Row[]> => {
    const result = await pool.query({ name: statement.name, text: statement.sql, values: bind(statement, rows) });
    return result.rows as Row[];
  };
  return {
    dialect: 'postgres',
    bytes: 'bytea',
    db,
    read: (statement, values) => query(statement, [values]),
    write: (statementFor, rows) => query(statementFor(rows.length), rows),
    close: () => db.destroy(),
  };
}
