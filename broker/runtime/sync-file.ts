/** Files and folders that survive a loss of power. */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Windows can neither open nor sync a folder; NTFS has a journal of its names. */
const FOLDERS_SYNC = process.platform !== 'win32';
/** Windows syncs only what may be written (FlushFileBuffers). */
const FLAGS = 'r+';

/** fsync of a file that is there. Throws errors of the file system. */
export const syncFile = (path: string): void => sync(path, FLAGS);

/** fsync of a folder: makes new, renamed and removed names durable. Throws errors of the file system. */
export function syncFolder(path: string): void {
  if (FOLDERS_SYNC) sync(path, 'r');
}

/** The same without blocking. */
export async function syncFolderLater(path: string): Promise<void> {
  if (!FOLDERS_SYNC) return;
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function sync(path: string, flags: string): void {
  const file = openSync(path, flags);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
