/** Online backup of the SQLite store. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makePrivate } from './lock.ts';
import { PAGE_BYTES } from './sqlite-connection.ts';

/**
 * Copies the database at `path` to the new file `to` (0600), as a consistent snapshot, and checks the copy. In one read
 * transaction (VACUUM INTO): the shell's `.backup` releases its lock between steps, restarts after every commit, and never ends
 * on a broker in use. Returns the size of the copy in bytes. Throws on failure; then there is no file `to`.
 */
export function backupSqlite(path: string, to: string): number {
  if (!existsSync(path)) throw new Error(`There is no store at ${path}.`);
  if (existsSync(to)) throw new Error(`${to} already exists. Name a new file.`);
  const partial = `${to}.partial`;
  rmSync(partial, { force: true });
  try {
    makePrivate(partial);
    const source = new DatabaseSync(path, { readOnly: true });
    try {
      source.exec(`PRAGMA busy_timeout=5000; PRAGMA page_size=${PAGE_BYTES}`);
      source.prepare('VACUUM INTO ?').run(partial);
    } finally {
      source.close();
    }
    check(partial);
    synchronise(partial);
    renameSync(partial, to);
    synchronise(dirname(to));
    return statSync(to).size;
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

function check(path: string): void {
  const copy = new DatabaseSync(path, { readOnly: true });
  try {
    const [found] = copy.prepare('PRAGMA quick_check').all();
    if (found?.quick_check !== 'ok') throw new Error(`The copy failed its integrity check: ${found?.quick_check}.`);
  } finally {
    copy.close();
  }
}

/** fsync, which SQLite does not do for the new file. */
function synchronise(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
