/** Retries reads without a response, a bounded number of times. A request that may have an effect is never retried. */
import { pause } from './pause.ts';
import { type BrokerReply, type BrokerRequest, BrokerUnreachable, type Send } from './send.ts';

const PAUSES_MS = [100, 400];
const UNREADY = 503;

/** Throws what `send` throws, after the last attempt. */
export async function sendRetryingReads(send: Send, request: BrokerRequest): Promise<BrokerReply> {
  if (!isRead(request)) return await send(request);
  for (const ms of PAUSES_MS) {
    try {
      const reply = await send(request);
      if (reply.status !== UNREADY) return reply;
    } catch (error) {
      if (!(error instanceof BrokerUnreachable) || error.code !== 'unreachable') throw error;
    }
    // Random jitter, so that many agents do not all reconnect at the same moment when a broker comes back.
    await pause(ms * (0.5 + Math.random()), request.signal);
  }
  return await send(request);
}

/** Whether the request only reads: a GET of the broker's API, or a governed call that sends a GET to a platform. */
function isRead({ method, path, body }: BrokerRequest): boolean {
  return method === 'GET' || (path === '/v1/actions' && (body as { method?: unknown } | undefined)?.method === 'GET');
}
