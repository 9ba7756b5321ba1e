/** The share of the limits of memory that this process may use: all of them with 1 GiB of memory, and less in proportion. */
import { getHeapStatistics } from 'node:v8';
import type { SharedLimit } from './shared-limit.ts';

const MIB = 1024 * 1024;
const FULL_MEMORY = 1024 * MIB;
/** What Node gives the heap by default in a container of 1 GiB. */
const FULL_HEAP = 512 * MIB;
/** A body of an owner may have 16 MiB, which the limit of bodies that are being read must permit. */
const SMALLEST = 1 / 4;

/** `constrained`: the memory limit of the container, 0 or more than the machine has without one. `heap`: the limit of V8's heap (`--max-old-space-size`). */
export function memoryShare(constrained: number, heap: number): number {
  const memory = constrained === 0 ? FULL_MEMORY : constrained;
  return Math.max(SMALLEST, Math.min(1, memory / FULL_MEMORY, heap / FULL_HEAP));
}

/** The share of this process. */
export const MEMORY_SHARE = memoryShare(process.constrainedMemory(), getHeapStatistics().heap_size_limit);

/** Returns the share of a limit in bytes. */
export const shareOf = ({ all, reserve, little }: SharedLimit, share = MEMORY_SHARE): SharedLimit => ({
  all: all * share,
  reserve: reserve * share,
  little: little * share,
});
