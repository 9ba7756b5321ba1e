/** `?wait=`: long polling, which answers as soon as there is news, or when the client has disconnected. */
import { z } from 'zod';
import { readSettled, type Watching } from '../audit/read-settled.ts';
import type { Context } from './route.ts';

const MAX_WAIT_SECONDS = 50;

/** The parameter in whole seconds, converted to milliseconds, at most MAX_WAIT_SECONDS; 0 when the client does not wait. */
export const Waiting = z.object({
  wait: z
    .string()
    .regex(/^\d{1,6}$/, 'whole seconds, such as 50')
    .transform((text) => Math.min(Number(text), MAX_WAIT_SECONDS) * 1000)
    .default(0)
    .describe(
      `how many seconds to wait for a change: more than ${MAX_WAIT_SECONDS} are ${MAX_WAIT_SECONDS}; omitted: no waiting`,
    )
    .meta({ type: 'integer', minimum: 0 }),
});

type WaitContext = { services: Watching } & Pick<Context, 'request' | 'left'>;

/** Like `readSettled`, until the request's connection closes, or `left` aborts. */
export async function waitForNews<Found>(
  { services, request, left }: WaitContext,
  id: string,
  read: () => Promise<Found>,
  options: Omit<Parameters<typeof readSettled<Found>>[3], 'left'>,
): Promise<Found> {
  // One connection may carry many requests concurrently (RFC 9112 section 9.3.2), so many listeners are not a leak.
  const socket = request.socket.setMaxListeners(0);
  const closed = new AbortController();
  const close = () => closed.abort();
  if (socket.destroyed) close();
  socket.once('close', close);
  try {
    const signal = left ? AbortSignal.any([closed.signal, left]) : closed.signal;
    return await readSettled(services, id, read, { ...options, left: signal });
  } finally {
    socket.off('close', close);
  }
}
