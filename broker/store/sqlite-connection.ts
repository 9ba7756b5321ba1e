/** Connections to the SQLite database file. */
import { chmodSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { makePrivate } from './lock.ts';

/**
 * Of a new database; it cannot be changed later. An audit row of 2.2 KB, as earlier versions wrote them and as long
 * decisions make them, takes a page of SQLite's own 4,096 bytes to itself; of these it takes 2.4 KB, for no more CPU time.
 */
export const PAGE_BYTES = 16_384;
/** Size of the write-ahead log at which it is checkpointed; SQLite's default is 1,000 pages of any size. */
const LOG_BYTES = 4_096_000;
/** synchronous=FULL: every commit syncs the write-ahead log. */
const FULL = 2;

/** Opens a writing connection, and verifies its durability settings: SQLite ignores unsupported ones silently. */
export function openWriter(path: string): DatabaseSync {
  makePrivate(path);
  const pragmas = { busy_timeout: 5000, journal_mode: 'wal', foreign_keys: 1, synchronous: FULL };
  const writer = new DatabaseSync(path);
  try {
    chmodSync(path, 0o600);
    writer.exec(`PRAGMA page_size=${PAGE_BYTES}`);
    for (const [name, wanted] of Object.entries(pragmas)) {
      writer.exec(`PRAGMA ${name}=${wanted}`);
      const found = Object.values(writer.prepare(`PRAGMA ${name}`).get() ?? {})[0];
      if (found !== wanted) throw new Error(`its file system does not support ${name}=${wanted} (it is ${found})`);
    }
    const { page_size: pageBytes } = writer.prepare('PRAGMA page_size').get() as { page_size: number };
    writer.exec(`PRAGMA wal_autocheckpoint=${Math.round(LOG_BYTES / pageBytes)}`);
    return writer;
  } catch (error) {
    writer.close();
    throw error;
  }
}

/** Opens a read-only connection with so many KiB of page cache. The file has to exist. */
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
