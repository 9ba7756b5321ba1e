/** The embedded store: `node:sqlite` under Kysely, and a second, read-only connection for the hot path. */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { Kysely, SqliteAdapter, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely';
import { lockFolder, makePrivate } from './lock.ts';
import type { Schema } from './schema.ts';
import { bind, type Prepared, type Store } from './store.ts';

/** More distinct statements than the broker has; beyond it the oldest is prepared again when next used. */
const KEPT_STATEMENTS = 500;

/** Statements of one connection, prepared once. */
const statementCache = (database: DatabaseSync) => {
  const kept = new Map<string, StatementSync>();
  return (sql: string): StatementSync => {
    const found = kept.get(sql);
    if (found) return found;
    const statement = database.prepare(sql);
    if (kept.size >= KEPT_STATEMENTS) kept.delete(kept.keys().next().value as string);
    kept.set(sql, statement);
    return statement;
  };
};

const asInputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];

/** Kysely's idea of a SQLite database over `DatabaseSync`. */
const adapt = (database: DatabaseSync): SqliteDatabase => {
  const prepare = statementCache(database);
  return {
    close: () => database.close(),
    prepare: (sql): SqliteStatement => {
      const statement = prepare(sql);
      return {
        reader: statement.columns().length > 0,
        all: (parameters) => statement.all(...asInputs(parameters)),
        run: (parameters) => statement.run(...asInputs(parameters)),
        iterate: (parameters) => statement.iterate(...asInputs(parameters)),
      };
    },
  };
};

/** SQLite's DDL is transactional; Kysely's adapter says no because it does not switch foreign keys off for it. */
class TransactionalDdl extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class NodeSqliteDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new TransactionalDdl();
  }
}

const PRAGMAS = { busy_timeout: 5000, journal_mode: 'wal', synchronous: 2, foreign_keys: 1 } as const;

/** Opens the connection that writes, and sees that it is as durable as we promise: SQLite itself refuses in silence. */
function openWriter(path: string): DatabaseSync {
  makePrivate(path);
  const writer = new DatabaseSync(path);
  try {
    chmodSync(path, 0o600);
    for (const [name, wanted] of Object.entries(PRAGMAS)) {
      writer.exec(`PRAGMA ${name}=${wanted}`);
      const found = Object.values(writer.prepare(`PRAGMA ${name}`).get() ?? {})[0];
      if (found !== wanted) throw new Error(`its file system does not take ${name}=${wanted} (it is ${found})`);
    }
    return writer;
  } catch (error) {
    writer.close();
    throw error;
  }
}

/**
 * Opens (and makes, 0700) the store in `folder`. Durable against power loss: WAL with `synchronous=FULL`.
 * Throws FolderInUse when another process has it.
 */
export function openSqlite(folder: string): Store {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = lockFolder(folder);
  const path = join(folder, 'broker.db');
  let writer: DatabaseSync | undefined;
  let reader: DatabaseSync;
  try {
    writer = openWriter(path);
    // Reads go past Kysely's one connection: WAL gives them the last committed state without waiting for a transaction
    // that is open on the writer, and without ever being part of it.
    reader = new DatabaseSync(path, { readOnly: true });
  } catch (error) {
    writer?.close();
    lock.release();
    throw new Error(`The store ${path} cannot be opened: ${(error as Error).message}.`, { cause: error });
  }
  const written = writer;
  const prepareRead = statementCache(reader);
  const db = new Kysely<Schema>({ dialect: new NodeSqliteDialect({ database: adapt(written) }) });
  return {
    dialect: 'sqlite',
    bytes: 'blob',
    db,
    read: <Row>(statement: Prepared<Row>, values: Record<string, unknown>) =>
      prepareRead(statement.sql).all(...asInputs(bind(statement, values))) as Row[],
    write: async <Row>(statement: Prepared<Row>, values: Record<string, unknown>) => {
      const result = await db.executeQuery<Row>({ ...statement.compiled, parameters: bind(statement, values) });
      return result.rows;
    },
    close: async () => {
      reader.close();
      await db.destroy();
      if (written.isOpen) written.close();
      lock.release();
    },
  };
}
