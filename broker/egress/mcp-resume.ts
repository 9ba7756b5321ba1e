/**
 * Event streams of tool calls that end, or break, before the answer has come: resumed by GET with `Last-Event-ID`, where the server gave its events
 * ids (Streamable HTTP of 2025-03-26 to 2025-11-25, "Resumability and Redelivery"; servers of 2026-07-28 give none). That asks for the answer of the call
 * that was made, and makes none: so servers may close the connection while a tool works.
 */
import { type CallTime, mayPass } from './mcp-ask-again.ts';
import { NO_ANSWER, type RpcAnswer, type StreamPlace } from './mcp-rpc.ts';
import { unreachable } from './unreachable.ts';

export type StreamRequests = CallTime & {
  /** Asks for what comes after this event. */
  resume(lastEventId: string): Promise<RpcAnswer>;
};

/** Before the stream is asked for again, where the server says nothing, and at the least. A longer time is the server's to say. */
const RETRY_MS = { usual: 1_000, least: 100 };
/** Attempts one after the other that reach no stream: the server restarts, and may have forgotten the call. */
const MOST_FAILURES = 5;

/** Answers what the call was answered with, or `first` where its stream cannot be resumed. `place`: of the stream of `first`. */
export async function resumeStream(
  first: RpcAnswer,
  place: StreamPlace,
  { resume, pause, left }: StreamRequests,
): Promise<RpcAnswer> {
  if (!isEnd(first) && !(first.kind === 'unreachable' && first.code === 'connection_lost')) return first;
  for (let failures = 0; failures < MOST_FAILURES; ) {
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
    // Of a stream: an error with another status is about this request, not about the call.
    else return answer.kind !== 'http' && isSuccess(answer.received.status) ? answer : first;
  }
  return first;
}

/** Whether a stream ended in order, without the answer. */
const isEnd = (answer: RpcAnswer): boolean =>
  answer.kind === 'unreachable' && answer.code === 'not_mcp' && answer.cause === NO_ANSWER;

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
