/** The embedded store: `node:sqlite` under Kysely, and a second connection for the reads of the hot path. */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type Driver,
  Kysely,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  SqliteDriver,
  type SqliteStatement,
} from 'kysely';
import { lockFolder } from '../lock.ts';
import type { Schema } from '../schema.ts';
import { bind, type Store } from '../store.ts';
import { asInputs, MAIN_LOG_BYTES, openReader, openWriter, statementCache } from './connection.ts';

/** Milliseconds for which statements have blocked this thread since it last yielded. */
type Blocked = { ms: number };

/** Adapts `DatabaseSync` to Kysely's interface. */
const adapt = (database: DatabaseSync, blocked: Blocked): SqliteDatabase => {
  const prepare = statementCache(database);
  const timed = <Result>(work: () => Result): Result => {
    const began = performance.now();
    try {
      return work();
    } finally {
      blocked.ms += performance.now() - began;
    }
  };
  return {
    close: () => database.close(),
    prepare: (sql): SqliteStatement => {
      // Some errors, such as a full disk, roll back automatically; another rollback would fail and mask that error.
      const statement = prepare(sql === 'rollback' && !database.isTransaction ? 'select 1' : sql);
      return {
        reader: statement.columns().length > 0,
        all: (parameters) => timed(() => statement.all(...asInputs(parameters))),
        run: (parameters) => timed(() => statement.run(...asInputs(parameters))),
        iterate: (parameters) => statement.iterate(...asInputs(parameters)),
      };
    },
  };
};

/** SQLite's DDL is transactional. Kysely's adapter reports that it is not, because Kysely does not disable foreign keys for it. */
class TransactionalDdl extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** After statements have blocked this thread for this long, releasing the connection waits for a turn of the event loop. */
const TURN_MS = 20;

/**
 * A commit blocks this thread for as long as the disk takes, and between two statements only promises are resolved: without this, all who wait
 * for the connection would get it one after the other before any request, probe or timer could run.
 */
class YieldingDriver extends SqliteDriver {
  readonly #blocked: Blocked;
  constructor(database: SqliteDatabase, blocked: Blocked) {
    super({ database });
    this.#blocked = blocked;
  }

  override async releaseConnection(): Promise<void> {
    if (this.#blocked.ms < TURN_MS) return;
    this.#blocked.ms = 0;
    await nextTurn();
  }
}

class NodeSqliteDialect extends SqliteDialect {
  readonly #driver: Driver;
  constructor(connection: DatabaseSync) {
    const blocked: Blocked = { ms: 0 };
    const database = adapt(connection, blocked);
    super({ database });
    this.#driver = new YieldingDriver(database, blocked);
  }

  override createDriver(): Driver {
    return this.#driver;
  }

  override createAdapter(): SqliteAdapter {
    return new TransactionalDdl();
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Page cache for the hot path of over a thousand agents. SQLite's default is 2 MB. */
const HOT_CACHE_KIB = 16_000;

/**
 * Opens the store in `folder`, which is created (0700) if necessary. Durable against power loss: WAL with `synchronous=FULL`. Throws
 * FolderInUse when another process uses it.
 */
export function openSqlite(folder: string): Store {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = lockFolder(folder);
  const path = join(folder, 'broker.db');
  let writer: DatabaseSync | undefined;
  let reader: DatabaseSync;
  try {
    writer = openWriter(path, MAIN_LOG_BYTES);
    reader = openReader(path, HOT_CACHE_KIB);
  } catch (error) {
    writer?.close();
    lock.release();
    throw new Error(`The store ${path} cannot be opened: ${(error as Error).message}.`, { cause: error });
  }
  const written = writer;
  const db = new Kysely<Schema>({ dialect: new NodeSqliteDialect(written) });
  const prepareRead = statementCache(reader, { arrays: true });
  return {
    dialect: 'sqlite',
    bytes: 'blob',
    db,
    // Bypasses Kysely's single connection: neither waits for a transaction that is open there, nor reads its uncommitted changes.
    read: (statement, values) =>
      prepareRead(statement.sql).all(...asInputs(bind(statement, values))) as unknown as unknown[][],
    reports: async () => db,
    appendTo: { dialect: 'sqlite', path },
    // Holding Kysely's single connection guarantees that no transaction is open there. SQLite has one writer, and a transaction
    // that tries to write while another one does fails (SQLITE_BUSY).
    exclusively: async (work) => await db.connection().execute(work),
    load: () => ({ dialect: 'sqlite', bytes: sizeOf(path), logBytes: sizeOf(`${path}-wal`) }),
    close: async () => {
      reader.close();
      await db.destroy();
      if (written.isOpen) written.close();
      lock.release();
    },
  };
}
