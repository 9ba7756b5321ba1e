/** Reads that got no answer are asked again, a bounded number of times. Nothing that may have an effect ever is. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BrokerReply, type BrokerRequest, BrokerUnreachable, type Send } from './send.ts';

const PAUSES_MS = [100, 400];
const UNREADY = 503;

/** Throws what `send` throws, after the last attempt. */
export async function sendRetryingReads(send: Send, request: BrokerRequest): Promise<BrokerReply> {
  if (!isRead(request)) return await send(request);
  for (const pause of PAUSES_MS) {
    try {
      const reply = await send(request);
      if (reply.status !== UNREADY) return reply;
    } catch (error) {
      if (!(error instanceof BrokerUnreachable) || error.code !== 'unreachable') throw error;
    }
    // Not all at the same moment, when a broker comes back that many agents wait for.
    await sleep(pause * (0.5 + Math.random()), undefined, { ...(request.signal && { signal: request.signal }) });
  }
  return await send(request);
}

/** What is asked of the broker by GET, and governed calls that ask a platform by GET. */
function isRead({ method, path, body }: BrokerRequest): boolean {
  return method === 'GET' || (path === '/v1/actions' && (body as { method?: unknown } | undefined)?.method === 'GET');
}
