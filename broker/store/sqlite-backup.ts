/** A backup of the embedded store, made while a broker writes to it. */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makePrivate } from './lock.ts';
import { PAGE_BYTES } from './sqlite-connection.ts';

/**
 * Copies the database at `path` to the new file `to` (0600), as it is at one moment, and checks the copy. In one read
 * transaction: one that gives its lock back now and then, as the shell's `.backup`, begins again with every commit in
 * between, and never ends on a broker in use. Answers the bytes of the copy, in which no page is empty. Throws when it
 * cannot; then there is no file `to`.
 */
export function backupSqlite(path: string, to: string): number {
  if (!existsSync(path)) throw new Error(`There is no store at ${path}.`);
  if (existsSync(to)) throw new Error(`${to} is there already. Name a new file.`);
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
    if (found?.quick_check !== 'ok') throw new Error(`The copy is not sound: ${found?.quick_check}.`);
  } finally {
    copy.close();
  }
}

/** SQLite leaves it to the operating system when the new file reaches the disk. */
function synchronise(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
