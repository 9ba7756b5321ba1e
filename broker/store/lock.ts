import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Another process serves this data folder. */
export class FolderInUse extends Error {
  constructor(folder: string) {
    super(
      `Another broker is running on ${folder}. One data folder takes one server: stop the other one, choose another folder ` +
        `with AGENT_BROKER_DATA, or use PostgreSQL (DATABASE_URL), which any number of servers may share.`,
    );
    this.name = 'FolderInUse';
  }
}

/**
 * Takes the folder for this process until `release` or the end of the process, however it ends: the operating system's
 * lock on a tiny SQLite file of its own, because Node has no flock, and a file with a process id outlives a kill -9.
 */
export function lockFolder(folder: string): { release(): void } {
  const path = join(folder, 'lock');
  makePrivate(path);
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === 5) throw new FolderInUse(folder);
    throw error;
  }
  return { release: () => database.isOpen && database.close() };
}

/**
 * Makes an empty file that is its owner's alone, unless it is there: SQLite would make it for everybody to read, and the
 * files beside it take their mode from it. An existing file is not opened: closing it again would end this process's own
 * locks on it (POSIX fcntl).
 */
export function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
