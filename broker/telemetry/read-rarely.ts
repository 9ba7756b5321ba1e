/** Caches expensive readings for gauges that may be scraped often. */
import { withTimeout } from '../runtime/waits.ts';

/** Monitoring scrapes every 10 s or less often, with a similar timeout. */
const TIMEOUT_MS = 1_000;

/** Reads at most once per `everyMs`; calls in between get the last reading. Undefined when it failed, or takes longer than a second. */
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
    return await withTimeout(latest, TIMEOUT_MS);
  };
}
