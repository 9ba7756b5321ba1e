/** Separate file systems that can be filled, or that the kernel sets read-only. Only root may mount them. */
import { execFileSync } from 'node:child_process';
import { existsSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';

/** Mounts a file system in memory, with this many bytes and inodes. */
export function ownFileSystem(bytes: string, inodes = '0'): string {
  const folder = newFolder();
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},nr_inodes=${inodes},mode=0755`, 'none', folder]);
  afterFile(() => execFileSync('umount', ['-l', folder]));
  return folder;
}

/** Uses up all remaining space. Returns the file. */
export function fill(folder: string): string {
  const file = join(folder, 'ballast');
  const { bavail, bsize } = statfsSync(folder);
  for (let left = bavail * bsize; left > 0; left = statfsSync(folder).bavail * bsize)
    try {
      writeFileSync(file, Buffer.alloc(Math.min(left, 1_048_576)), { flag: 'a' });
    } catch {
      break;
    }
  return file;
}

export type Ext4 = {
  folder: string;
  /** Sets it read-only as the kernel does after a disk error: nothing is written any more, not even to open files. */
  turnReadOnly(): void;
  /** Repairs it as an operator does: unmounts, repairs and mounts it again. No file of it may be open. */
  repair(): void;
};

/** Mounts an ext4 of 64 MiB on a loop device, with `errors=remount-ro`. */
export function ownExt4(): Ext4 {
  const [folder, images] = [newFolder(), newFolder()];
  const image = join(images, 'disk');
  const quietly = (program: string, ...words: string[]) =>
    execFileSync(program, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
  writeFileSync(image, '');
  truncateSync(image, 64 * 1_048_576);
  quietly('mkfs.ext4', '-q', '-F', image);
  const mount = () => quietly('mount', '-o', 'loop,errors=remount-ro', image, folder);
  const device = () => basename(quietly('findmnt', '-no', 'SOURCE', folder));
  mount();
  afterFile(() => quietly('umount', '-l', folder));
  return {
    folder,
    turnReadOnly: () => {
      const trigger = `/sys/fs/ext4/${device()}/trigger_fs_error`;
      if (!existsSync(trigger)) throw new Error(`the kernel has no ${trigger}`);
      writeFileSync(trigger, 'npm run prove');
    },
    repair: () => {
      quietly('umount', folder);
      // Exit code 1: errors were found and corrected.
      try {
        quietly('fsck.ext4', '-fy', image);
      } catch (error) {
        if ((error as { status?: number }).status !== 1) throw error;
      }
      mount();
    },
  };
}
