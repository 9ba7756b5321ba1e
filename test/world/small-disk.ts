/** A disk that can be filled. */
import { execFileSync } from 'node:child_process';
import { afterFile } from './runner/after-file.ts';
import { newFolder } from './stores.ts';

/** Mounts a small file system in memory until the end of the test file. Returns its folder; undefined where this user may not mount. */
export function smallDisk(bytes: number, folder: string = newFolder()): string | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  // Without --lazy this fails while a broker that did not stop holds a file open.
  afterFile(() => execFileSync('umount', ['--lazy', folder]));
  return folder;
}
