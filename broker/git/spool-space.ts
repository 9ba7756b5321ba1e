/** Limits how much of a file system request bodies may fill; it also holds the read journal, and often the store. */
import { mkdirSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';

const MIN_RESERVE_BYTES = 64 * 1024 ** 2;
const RESERVE_PART = 1 / 4;
/** Querying takes a turn of the thread pool, and bodies arrive in many pieces. */
const INTERVAL_MS = 1_000;

/** Bytes of a file system. `free`: available to this user. */
export type DiskSpace = { size: number; free: number };

/** Bytes that must stay free on a file system of `size` bytes. */
export const reserveOf = (size: number): number => Math.max(size * RESERVE_PART, MIN_RESERVE_BYTES);

/** Returns the space of the folder's file system; undefined when it does not report it. */
async function spaceOf(folder: string): Promise<DiskSpace | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  return found && found.blocks > 0 ? { size: found.blocks * found.bsize, free: found.bavail * found.bsize } : undefined;
}

/**
 * Returns the total bytes that files in the folder may have; `held`: their current bytes. The file system is queried once a second at most.
 */
export type SpoolSpace = (held: () => number) => Promise<number>;

/** `folder`: created on first use, for this process's user only. `space`: for tests. Rejects when the folder cannot be created. */
export function makeSpoolSpace(folder: string, space = spaceOf): SpoolSpace {
  let asked = Number.NEGATIVE_INFINITY;
  let most: Promise<number> | undefined;
  const ask = async (held: () => number): Promise<number> => {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found = await space(folder);
    return found ? held() + Math.max(0, found.free - reserveOf(found.size)) : Number.POSITIVE_INFINITY;
  };
  return (held) => {
    if (most === undefined || performance.now() - asked >= INTERVAL_MS) {
      asked = performance.now();
      most = ask(held);
    }
    return most;
  };
}
