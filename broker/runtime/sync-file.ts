/** Makes files and folders durable against power loss. */
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { open } from 'node:fs/promises';

/** Windows can neither open nor sync a folder; NTFS journals its names. */
const FOLDERS_SYNC = process.platform !== 'win32';

/** Calls fsync on an existing, writable file: Windows syncs no other (FlushFileBuffers). Throws errors of the file system. */
export const syncFile = (path: string): void => sync(openSync(path, 'r+'));

/**
 * Calls fsync on a folder, which makes new, renamed and removed names durable. A folder that is writable but not readable cannot be opened,
 * and is skipped. Throws other errors of the file system.
 */
export function syncFolder(path: string): void {
  if (!FOLDERS_SYNC) return;
  let folder: number;
  try {
    folder = openSync(path, 'r');
  } catch (error) {
    if (isUnreadable(error)) return;
    throw error;
  }
  sync(folder);
}

/** The same, asynchronously. */
export async function syncFolderLater(path: string): Promise<void> {
  if (!FOLDERS_SYNC) return;
  const folder = await open(path, 'r').catch((error: unknown) => {
    if (isUnreadable(error)) return undefined;
    throw error;
  });
  try {
    await folder?.sync();
  } finally {
    await folder?.close();
  }
}

const isUnreadable = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'EACCES';

function sync(file: number): void {
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
