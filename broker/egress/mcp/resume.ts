/**
 * Resumes event streams of tool calls that end or break before the answer, by GET with `Last-Event-ID`, when the server gave its events ids
 * (Streamable HTTP of 2025-03-26 to 2025-11-25, "Resumability and Redelivery"; servers of 2026-07-28 give none). Resuming fetches the
 * answer of the existing call and makes no new one, so servers may close the connection while a tool works.
 */

import { unreachable } from '../unreachable.ts';
import { type CallTime, mayPass } from './ask-again.ts';
import { NO_ANSWER, type RpcAnswer, type StreamPlace } from './rpc.ts';

export type StreamRequests = CallTime & {
  /** Requests the events after this one. */
  resume(lastEventId: string): Promise<RpcAnswer>;
};

/** Delay before a stream is resumed: the default when the server gives none, and the minimum. A longer one is up to the server. */
const RETRY_MS = { usual: 1_000, least: 100 };
/** Consecutive failed attempts before giving up: the server restarts, and may have lost the call. */
const MAX_FAILURES = 5;

/** Returns the answer of the call, or `first` when its stream cannot be resumed. `place`: position in the stream of `first`. */
export async function resumeStream(
  first: RpcAnswer,
  place: StreamPlace,
  { resume, pause, left }: StreamRequests,
): Promise<RpcAnswer> {
  if (!isEnd(first) && !(first.kind === 'unreachable' && first.code === 'connection_lost')) return first;
  for (let failures = 0; failures < MAX_FAILURES; ) {
    const { lastEventId, retryMs = RETRY_MS.usual } = place;
    if (lastEventId === undefined) return first;
    const leftMs = left();
    if (leftMs <= 0) return unreachable('timeout', true, 'total');
    await pause(Math.min(leftMs, Math.max(RETRY_MS.least, retryMs)));
    const answer = await resume(lastEventId);
    if (isEnd(answer) || place.lastEventId !== lastEventId) failures = 0;
    if (isEnd(answer)) continue;
    if (mayPass(answer)) failures++;
    else if (answer.kind === 'unreachable') return { ...answer, sent: true };
    // An error with another status is about this request, not about the call.
    else return answer.kind !== 'http' && isSuccess(answer.received.status) ? answer : first;
  }
  return first;
}

/** Whether a stream ended cleanly, without the answer. */
const isEnd = (answer: RpcAnswer): boolean =>
  answer.kind === 'unreachable' && answer.code === 'not_mcp' && answer.cause === NO_ANSWER;

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
