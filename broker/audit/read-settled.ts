/** Waits until a person's decision changes what was read, without polling the store. */
import type { Uses } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import type { ApprovalChanges } from './changes.ts';

/** Dependencies of a wait. */
export type Watching = Uses<'clock'> & { changes: Pick<ApprovalChanges, 'watch'> };

/**
 * Reads until the result is settled, the timeout has passed, or the client has disconnected. Between two reads the store is not queried.
 *
 * @param id of what is watched, or a topic
 * @param options.waitMs timeout in milliseconds
 * @param options.left aborted when the client has disconnected
 * @param options.changesAt when the result changes by time alone (such as on expiry), Infinity when it does not
 * @returns the last result
 */
export async function readSettled<Found>(
  { broker, changes }: Watching,
  id: string,
  read: () => Promise<Found>,
  options: {
    waitMs: number;
    left: AbortSignal | undefined;
    isSettled: (found: Found, now: Instant) => boolean;
    changesAt: (found: Found) => Instant;
  },
): Promise<Found> {
  const until = performance.now() + options.waitMs;
  const watch = changes.watch(id);
  const { left } = options;
  if (left?.aborted) watch.end();
  else left?.addEventListener('abort', watch.end);
  try {
    for (;;) {
      const found = await read();
      const now = broker.clock();
      const still = until - performance.now();
      if (options.isSettled(found, now) || still <= 0 || watch.over()) return found;
      await watch.news(Math.min(still, options.changesAt(found) - now));
    }
  } finally {
    left?.removeEventListener('abort', watch.end);
    watch.end();
  }
}
