import type { CallLease } from '../egress/call-budget.ts';
import type { Identify } from './caller.ts';
import type { GitRequest } from './git-request.ts';
import type { RawRequest } from './raw-request.ts';
import type { StreamTaker } from './streamed.ts';

/** What a door may bring beside the action. */
export type FromDoor = {
  /** Of the budget, to be released by the door when the answer has been taken; without one the answer is given up here. */
  lease?: CallLease | undefined;
  /** Of a door that passes answers on as they come. */
  taker?: StreamTaker | undefined;
  /** Of the git door, which has a taker, too. */
  git?: GitRequest | undefined;
  /** Of the raw door: the request as its client wrote it, whose scope is found by its endpoint. */
  raw?: RawRequest | undefined;
  /** The trace context that came with the request. */
  traceparent?: string | undefined;
  /** Aborted when whoever asked has left; of streamed calls. */
  left?: AbortSignal | undefined;
  /** Who the caller is; asked only where that counts. */
  identify?: Identify;
};
