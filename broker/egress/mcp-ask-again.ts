/** Asking an MCP server what became of a tool call that was made: by polling its task, or by resuming its stream. That changes nothing, and is repeated. */
import type { CallLease } from './call-budget.ts';
import type { RpcAnswer } from './mcp-rpc.ts';
import type { UnreachableCode } from './unreachable.ts';

/** The time of a call. */
export type CallTime = {
  /** Waits so many milliseconds, or until the call is stopped. */
  pause(ms: number): Promise<void>;
  /** Milliseconds that the call may still take. */
  left(): number;
};

/** `until`: when it is over, in milliseconds of `performance.now()`, as of each question. `lease`: by which the call is stopped. */
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

const PASSING: ReadonlySet<UnreachableCode> = new Set([
  'connect_failed',
  'connection_lost',
  'dns_failed',
  'timeout',
  'busy',
]);

/** Whether a request failed for a reason that may pass: the server restarts, or has had too many. */
export function mayPass(answer: RpcAnswer): boolean {
  if (answer.kind === 'unreachable') return PASSING.has(answer.code);
  const { status } = answer.received;
  return status >= 500 || status === 408 || status === 429;
}
