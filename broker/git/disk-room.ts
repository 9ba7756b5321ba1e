/** How much of a file system request bodies may fill, which holds the notes of reads, and often the store, as well. */
import { mkdirSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';

const LEAST_RESERVE_BYTES = 64 * 1024 ** 2;
const RESERVE_PART = 1 / 4;
/** Asking costs a turn of the thread pool, and bodies come in many pieces. */
const EVERY_MS = 1_000;

/** Bytes of a file system. `free`: for this user. */
export type DiskSpace = { size: number; free: number };

/** Bytes that bodies leave free on a file system of `size` bytes. */
export const reserveOf = (size: number): number => Math.max(size * RESERVE_PART, LEAST_RESERVE_BYTES);

/** The space where a folder is; undefined: the file system does not say. */
async function spaceOf(folder: string): Promise<DiskSpace | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  return found && found.blocks > 0 ? { size: found.blocks * found.bsize, free: found.bavail * found.bsize } : undefined;
}

/** Bytes that files in the folder may have in all, with `held`, which they have now. It is asked once a second at the most. */
export type DiskRoom = (held: () => number) => Promise<number>;

/** `folder`: made when it is asked for first, for this process's user alone. `space`: for tests. Rejects where it cannot be made. */
export function makeDiskRoom(folder: string, space = spaceOf): DiskRoom {
  let asked = Number.NEGATIVE_INFINITY;
  let most: Promise<number> | undefined;
  const ask = async (held: () => number): Promise<number> => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = await space(folder);
    return found ? held() + Math.max(0, found.free - reserveOf(found.size)) : Number.POSITIVE_INFINITY;
  };
  return (held) => {
    if (most === undefined || performance.now() - asked >= EVERY_MS) {
      asked = performance.now();
      most = ask(held);
    }
    return most;
  };
}
