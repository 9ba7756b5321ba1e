/** `?wait=`: answers as soon as there is news, without asking the store in between. */
import { z } from 'zod';
import type { Instant } from '../policy/facts.ts';
import type { Services } from '../services.ts';
import type { Context } from './route.ts';

const MAX_WAIT_SECONDS = 50;

/** The parameter: whole seconds, in milliseconds; 0 for a client that does not wait. */
export const Waiting = z.object({
  wait: z
    .string()
    .regex(/^\d{1,6}$/, `whole seconds, ${MAX_WAIT_SECONDS} at most`)
    .transform((text) => Math.min(Number(text), MAX_WAIT_SECONDS) * 1000)
    .default(0)
    .describe('how many seconds to wait for news; left out: it is answered at once')
    .meta({ type: 'integer', minimum: 0, maximum: MAX_WAIT_SECONDS }),
});

/**
 * Reads until it is settled, time is over, or nobody listens any more. Between two readings it costs the store nothing.
 * `changesAt`: when time itself makes another thing of what was read, Infinity when it does not.
 */
export async function readSettled<Found>(
  { broker, changes }: Services,
  id: string,
  read: () => Promise<Found>,
  options: {
    waitMs: number;
    request: Context['request'];
    left: Context['left'];
    isSettled: (found: Found, now: Instant) => boolean;
    changesAt: (found: Found) => Instant;
  },
): Promise<Found> {
  const until = performance.now() + options.waitMs;
  const watch = changes.watch(id);
  // One connection may carry many requests at once (RFC 9112 section 9.3.2): so many listeners are no leak.
  const socket = options.request.socket.setMaxListeners(0);
  const { left } = options;
  if (socket.destroyed || left?.aborted) watch.end();
  else {
    socket.once('close', watch.end);
    left?.addEventListener('abort', watch.end);
  }
  try {
    for (;;) {
      const found = await read();
      const now = broker.clock();
      const still = until - performance.now();
      if (options.isSettled(found, now) || still <= 0 || watch.over()) return found;
      await watch.news(Math.min(still, options.changesAt(found) - now));
    }
  } finally {
    socket.off('close', watch.end);
    left?.removeEventListener('abort', watch.end);
    watch.end();
  }
}
