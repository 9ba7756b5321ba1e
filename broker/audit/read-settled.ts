/** Waits for news of what a person decides, without asking the store in between. */
import type { Uses } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import type { ApprovalChanges } from './changes.ts';

/** What a wait needs of the process. */
export type Watching = Uses<'clock'> & { changes: Pick<ApprovalChanges, 'watch'> };

/**
 * Reads until it is settled, the time is over, or nobody listens any more. Between two readings it costs the store nothing.
 *
 * @param id of what is watched, or a topic
 * @param options.waitMs milliseconds
 * @param options.left aborted when nobody waits any more
 * @param options.changesAt when time itself makes another thing of what was read, Infinity when it does not
 * @returns what was read last
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
