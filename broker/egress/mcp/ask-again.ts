/**
 * Polls an MCP server for the result of a tool call that was made: its task, or its resumed stream. Polling has no effect, so it is
 * retried.
 */
import type { CallLease } from '../call-lease.ts';
import type { UnreachableCode } from '../unreachable.ts';
import type { RpcAnswer } from './rpc.ts';

/** The time limit of a call. */
export type CallTime = {
  /** Waits this many milliseconds, or until the call is stopped. */
  pause(ms: number): Promise<void>;
  /** Milliseconds until the call times out. */
  left(): number;
};

/** `until`: returns the deadline, of `performance.now()`, when asked. `lease`: stops the call. */
export const callTime = (until: () => number, lease: CallLease | undefined): CallTime => ({
  pause: (ms) => pauseOf(ms, lease),
  left: () => until() - performance.now(),
});

function pauseOf(ms: number, lease: CallLease | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (lease?.stopped) return resolve();
    const end = () => {
      clearTimeout(timer);
      forget?.();
      resolve();
    };
    const timer = setTimeout(end, ms);
    const forget = lease?.whenStopped(end);
  });
}

const TEMPORARY: ReadonlySet<UnreachableCode> = new Set([
  'connect_failed',
  'connection_lost',
  'dns_failed',
  'timeout',
  'busy',
]);

/** Whether a request failed for a temporary reason: the server restarts, or is overloaded. */
export function mayPass(answer: RpcAnswer): boolean {
  if (answer.kind === 'unreachable') return TEMPORARY.has(answer.code);
  const { status } = answer.received;
  return status >= 500 || status === 408 || status === 429;
}
