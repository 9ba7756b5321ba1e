/**
 * Event streams of tool calls that end, or break, before the answer has come: resumed by GET with `Last-Event-ID`, where the server gave its events
 * ids (Streamable HTTP of 2025-03-26 to 2025-11-25, "Resumability and Redelivery"; servers of 2026-07-28 give none). That asks for the answer of the call
 * that was made, and makes none: so servers may close the connection while a tool works.
 */
import { NO_ANSWER, type RpcAnswer, type StreamPlace } from './mcp-rpc.ts';
import { type UnreachableCode, unreachable } from './unreachable.ts';

export type StreamRequests = {
  /** Asks for what comes after this event. */
  resume(lastEventId: string): Promise<RpcAnswer>;
  /** Waits so many milliseconds, or until the call is stopped. */
  pause(ms: number): Promise<void>;
  /** Milliseconds that the call may still take. */
  left(): number;
};

/** Before the stream is asked for again, where the server says nothing, and at the least. A longer time is the server's to say. */
const RETRY_MS = { usual: 1_000, least: 100 };
/** Attempts one after the other that reach no stream: the server restarts, and may have forgotten the call. */
const MOST_FAILURES = 5;

/** What may pass, so that the stream is asked for again. */
const PASSING: ReadonlySet<UnreachableCode> = new Set([
  'connect_failed',
  'connection_lost',
  'dns_failed',
  'timeout',
  'busy',
]);

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
    if (answer.kind === 'unreachable') {
      if (!PASSING.has(answer.code)) return { ...answer, sent: true };
      failures++;
      continue;
    }
    const { status } = answer.received;
    // Of a stream: an error with another status is about this request, not about the call.
    if (answer.kind !== 'http' && status >= 200 && status < 300) return answer;
    if (status < 500 && status !== 408 && status !== 429) return first;
    failures++;
  }
  return first;
}

/** Whether a stream ended in order, without the answer. */
const isEnd = (answer: RpcAnswer): boolean =>
  answer.kind === 'unreachable' && answer.code === 'not_mcp' && answer.cause === NO_ANSWER;
