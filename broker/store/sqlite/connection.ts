/** Connections to the SQLite database file, and their prepared statements. */
import { chmodSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { recentlyUsed } from '../../runtime/recently-used.ts';
import { makePrivate } from '../lock.ts';

/**
 * Page size of a new database; it cannot be changed later. Except for its entry in the index by agent, a row goes to the same few pages as the
 * previous one, and a commit writes each touched page to the write-ahead log as a whole. Compared with pages of 16 KiB, a commit of one row
 * takes half the time, and of 32 rows less than half, while rows take a twentieth more space.
 */
export const PAGE_BYTES = 4_096;
/**
 * Size of the write-ahead log at which a commit checkpoints it, for the connection that appends audit rows in a thread of its own; SQLite's
 * default is 1,000 pages of any size. Rows of many agents touch the same pages of the index by agent again and again, and a checkpoint
 * writes each of them once: a log four times as large takes 7 to 12 % less CPU for a governed read under load.
 */
export const APPENDER_LOG_BYTES = 16_384_000;
/**
 * The same for the main thread's connection. A checkpoint syncs the whole database file, which blocked all requests for up to a tenth of a
 * second. The appender checkpoints long before, unless no rows are appended.
 */
export const MAIN_LOG_BYTES = 4 * APPENDER_LOG_BYTES;
/** synchronous=FULL: every commit syncs the write-ahead log. */
const FULL = 2;

/**
 * Opens a writing connection, and verifies its durability settings: SQLite ignores unsupported ones silently.
 *
 * @param logBytes size of the write-ahead log at which its commits checkpoint
 */
export function openWriter(path: string, logBytes: number): DatabaseSync {
  makePrivate(path);
  const pragmas = { busy_timeout: 5000, journal_mode: 'wal', foreign_keys: 1, synchronous: FULL };
  // Before it is opened: a restored store has the mode of its backup, which may be kept as a file that nobody writes.
  chmodSync(path, 0o600);
  const writer = new DatabaseSync(path);
  try {
    writer.exec(`PRAGMA page_size=${PAGE_BYTES}`);
    for (const [name, wanted] of Object.entries(pragmas)) {
      writer.exec(`PRAGMA ${name}=${wanted}`);
      const found = Object.values(writer.prepare(`PRAGMA ${name}`).get() ?? {})[0];
      if (found !== wanted) throw new Error(`its file system does not support ${name}=${wanted} (it is ${found})`);
    }
    const { page_size: pageBytes } = writer.prepare('PRAGMA page_size').get() as { page_size: number };
    writer.exec(`PRAGMA wal_autocheckpoint=${Math.round(logBytes / pageBytes)}`);
    return writer;
  } catch (error) {
    writer.close();
    throw error;
  }
}

/** Opens a read-only connection with `cacheKib` KiB of page cache. The file must exist. */
export function openReader(path: string, cacheKib: number): DatabaseSync {
  const reader = new DatabaseSync(path, { readOnly: true });
  try {
    reader.exec(`PRAGMA cache_size=-${cacheKib}`);
    return reader;
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** Limit of the cache: twice the number of distinct statements of the broker. */
const MAX_STATEMENTS = 1_000;

/** A cache of prepared statements of one connection. With `arrays` they return rows as lists of values, not as objects. */
export function statementCache(database: DatabaseSync, { arrays } = { arrays: false }): (sql: string) => StatementSync {
  const kept = recentlyUsed<StatementSync>(MAX_STATEMENTS);
  return (sql) => {
    const found = kept.get(sql);
    if (found) return found;
    const statement = database.prepare(sql);
    statement.setReturnArrays(arrays);
    kept.set(sql, statement);
    return statement;
  };
}

/** Casts parameters to the type that `node:sqlite` expects. */
export const asInputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
