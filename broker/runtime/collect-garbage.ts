/** Garbage collections at moments that V8 cannot know. */
import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (how: { type: 'major' | 'minor'; flavor?: 'last-resort' }) => void;

/** Without a flag on the command line. */
function exposedCollector(): Collect {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return collect;
}

const collect = exposedCollector();

/**
 * Frees the memory that only the start needed, a fifth of all, by a full garbage collection: V8 would not collect on an idle
 * broker. Takes some 50 ms.
 */
export function releaseStartMemory(): void {
  collect({ type: 'major', flavor: 'last-resort' });
}

const COLLECTED_AFTER = 16 * 1024 * 1024;
/** Of this process, because that is whose memory it is. */
let passed = 0;

/**
 * Counts the bytes of buffers that were read from a socket and passed on, and frees them now and then by a collection of young
 * objects, which takes a millisecond. A buffer is a small object for V8 and its bytes are outside of the heap, so V8 itself lets
 * 100 MB of them have accumulated, and then collects everything.
 */
export function countPassedBuffer(bytes: number): void {
  passed += bytes;
  if (passed < COLLECTED_AFTER) return;
  passed = 0;
  collect({ type: 'minor' });
}

/** Capacity of V8's new space, both semi-spaces together, from which on it does not grow. */
export const MAX_YOUNG_GENERATION_BYTES = 32 * 1024 * 1024;

/**
 * Bytes that V8's new space can have, both semi-spaces together. From Node 26 on, its size counts only the pages that were used since the last
 * collection, and so says too late that it has grown. A page's header is not counted: a few KB less than a power of two.
 */
export function youngGenerationCapacity(): number {
  const space = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  return space ? 2 * (space.space_used_size + space.space_available_size) : 0;
}

/**
 * Ends the growth of V8's young generation at MAX_YOUNG_GENERATION_BYTES. V8 would double it to 128 MB under load, for fewer collections. At 32 MB
 * they take 9.5 µs of a governed read, at 64 MB 5.7: one call in a hundred, for 55 MB less resident memory under load. The flag for its
 * maximum has to be on the command line; that for its growth is read at each collection. It may shrink when nothing happens, and
 * then grow again.
 */
export function limitYoungGeneration(): void {
  let grows = true;
  new PerformanceObserver(() => {
    const mayGrow = youngGenerationCapacity() <= MAX_YOUNG_GENERATION_BYTES / 2;
    if (mayGrow === grows) return;
    grows = mayGrow;
    setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`);
  }).observe({ entryTypes: ['gc'] });
}
