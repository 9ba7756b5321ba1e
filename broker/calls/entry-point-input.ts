import type { CallLease } from '../egress/call-lease.ts';
import type { Identify } from './caller.ts';
import type { GitRequest } from './git-request.ts';
import type { RawRequest } from './raw-request.ts';
import type { StreamConsumer } from './streamed.ts';

/** What an entry point (/v1, /proxy, /git, /mcp) may pass beside the action. */
export type EntryPointInput = {
  /**
   * The caller's lease on the budget, released by the entry point after the answer was read; without one the lease is released when the
   * call ends.
   */
  lease?: CallLease | undefined;
  /** Only for entry points that stream answers. */
  taker?: StreamConsumer | undefined;
  /** Only for git requests, which also have a taker. */
  git?: GitRequest | undefined;
  /** Only for /proxy: the request as its client wrote it; its scope is inferred from the endpoint. */
  raw?: RawRequest | undefined;
  /** The trace context of the incoming request. */
  traceparent?: string | undefined;
  /** Aborted when the client has disconnected; only for streamed calls. */
  left?: AbortSignal | undefined;
  /** Identifies the caller; called only when a decision needs it. */
  identify?: Identify;
};
