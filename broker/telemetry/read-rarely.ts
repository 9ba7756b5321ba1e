/** Readings that cost something, for gauges that many may ask for. */
import { withTimeout } from '../runtime/waits.ts';

/** Monitoring asks every 10 s or more, and gives up after as much. */
const PATIENCE_MS = 1_000;

/**
 * Reads at most once in `everyMs`: whoever asks meanwhile is told what was read then. Undefined when that failed, or takes longer than a
 * second.
 */
export function readRarely<T>(read: () => Promise<T>, everyMs = 10_000): () => Promise<T | undefined> {
  let latest: Promise<T | undefined> = Promise.resolve(undefined);
  let readAt = Number.NEGATIVE_INFINITY;
  let isReading = false;
  return async () => {
    if (!isReading && performance.now() - readAt >= everyMs) {
      isReading = true;
      readAt = performance.now();
      latest = read()
        .catch(() => undefined)
        .finally(() => {
          isReading = false;
        });
    }
    return await withTimeout(latest, PATIENCE_MS);
  };
}
