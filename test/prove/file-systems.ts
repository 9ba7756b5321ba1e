/** File systems of their own that can be full, or that the kernel sets read-only. Only root may mount one. */
import { execFileSync } from 'node:child_process';
import { existsSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterFile } from '../world/after-file.ts';
import { newFolder } from '../world/stores.ts';

/** In memory, of so many bytes and inodes. */
export function ownFileSystem(bytes: string, inodes = '0'): string {
  const folder = newFolder();
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},nr_inodes=${inodes},mode=0755`, 'none', folder]);
  afterFile(() => execFileSync('umount', ['-l', folder]));
  return folder;
}

/** Takes all the room that is left. Answers the file. */
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
  /** As the kernel does with a disk that has an error: from now on nothing is written, not by files that are open either. */
  turnReadOnly(): void;
  /** As an operator does: takes it off, has it repaired, and mounts it again. No file of it may be open. */
  repair(): void;
};

/** ext4 of 64 MiB on a disk of its own, with `errors=remount-ro`. */
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
      // 1: it found errors, and all are corrected.
      try {
        quietly('fsck.ext4', '-fy', image);
      } catch (error) {
        if ((error as { status?: number }).status !== 1) throw error;
      }
      mount();
    },
  };
}
