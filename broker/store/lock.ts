import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Another process serves this data folder. */
export class FolderInUse extends Error {
  constructor(folder: string) {
    super(
      `Another broker is running on ${folder}. A data folder can be used by one server only: stop the other one, choose another folder ` +
        `with AGENT_BROKER_DATA, or use PostgreSQL (DATABASE_URL), which any number of servers may share.`,
    );
    this.name = 'FolderInUse';
  }
}

/**
 * Locks the folder for this process until `release` or the end of the process, by the operating system's lock on a tiny SQLite file: Node
 * has no flock, and a pid file would outlive a kill -9.
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
 * Creates an empty file with mode 0600 unless it exists: SQLite would create it world-readable, and its -wal and -shm files
 * inherit the mode. An existing file is not opened: closing it would release this process's own locks on it (POSIX fcntl).
 */
export function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
