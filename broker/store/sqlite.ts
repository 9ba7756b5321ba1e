/** The embedded store: `node:sqlite` under Kysely, and a second connection for the hot path. */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, SqliteAdapter, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely';
import { lockFolder, makePrivate } from './lock.ts';
import type { Schema } from './schema.ts';
import { type HotConnection, makeHotConnection } from './sqlite-hot.ts';
import { asInputs, statementCache } from './sqlite-statements.ts';
import type { Store } from './store.ts';

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

const FULL = 2;
const NORMAL = 1;

/** Opens a connection that writes, and sees that it is as durable as we promise: SQLite itself refuses in silence. */
function openWriter(path: string, settings: { synchronous: typeof FULL | typeof NORMAL; cache_size?: number }) {
  makePrivate(path);
  const pragmas = { busy_timeout: 5000, journal_mode: 'wal', foreign_keys: 1, ...settings };
  const writer = new DatabaseSync(path);
  try {
    chmodSync(path, 0o600);
    for (const [name, wanted] of Object.entries(pragmas)) {
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
  let hot: HotConnection;
  try {
    writer = openWriter(path, { synchronous: FULL });
    // Negative: in KiB. The default of 2 MB is less than what the calls of a thousand agents look at.
    hot = makeHotConnection(openWriter(path, { synchronous: NORMAL, cache_size: -16_000 }), path);
  } catch (error) {
    writer?.close();
    lock.release();
    throw new Error(`The store ${path} cannot be opened: ${(error as Error).message}.`, { cause: error });
  }
  const written = writer;
  const db = new Kysely<Schema>({ dialect: new NodeSqliteDialect({ database: adapt(written) }) });
  return {
    dialect: 'sqlite',
    bytes: 'blob',
    db,
    // Past Kysely's one connection: without waiting for a transaction that is open there, and without being part of it.
    read: hot.read,
    write: async (statementFor, rows) => {
      // Kysely gives its one connection to one at a time: while we hold it no transaction is open there, for which this
      // one would have to wait without ever letting it go on.
      const stored = await db.connection().execute(async () => hot.append(statementFor(1), rows));
      await hot.sync();
      return stored;
    },
    close: async () => {
      hot.close();
      await db.destroy();
      if (written.isOpen) written.close();
      lock.release();
    },
  };
}
