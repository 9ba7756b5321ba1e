/** What the way out is asked to send. */
import type { Enough, ExchangeLimits } from './buffered-exchange.ts';
import type { CallLease } from './call-budget.ts';
import type { StreamSearch } from './streamed-exchange.ts';

export type RequestHead = {
  /** Without userinfo. The query may hold the credential: never log it. */
  url: URL;
  method: string;
  /** Names in lower case, each once, without `host`, `content-length` and hop-by-hop headers, which are added here. */
  headers: Readonly<Record<string, string>>;
  /** Requests with different keys never share a socket (SS-12). The connection's id, for calls with a credential. */
  connectionKey?: string;
  /** Whose call it is: families take turns when calls wait for a connection. All calls without one are one family. */
  family?: string;
  /** Sent to a public address only, whatever the operator listed: the target of a redirect, which nobody configured. */
  publicOnly?: boolean;
  /** What the bytes of the answer are counted on while they are in memory. */
  lease?: CallLease;
};

export type OutboundRequest = RequestHead & {
  body?: Buffer | string;
  /** Ends when its lease is stopped. Others are answered to their end, so that the row says what became of them. */
  endsWithAccess?: boolean;
  /** Stops reading the response early. Only for uncompressed bodies: send `accept-encoding: identity`. */
  enough?: Enough;
} & Partial<ExchangeLimits>;

/** How long an answer that is kept whole may be silent, and take in all, unless told. */
export const WHOLE_IDLE_MS = 30_000;
export const WHOLE_TOTAL_MS = 120_000;

/** How long a streamed answer may be silent unless told. */
export const STREAM_IDLE_MS = 60_000;

export type StreamRequest = RequestHead & {
  /** Pieces as they come, taken as fast as the upstream takes them. What they throw ends the request. */
  body?: Buffer | string | AsyncIterable<Uint8Array>;
  /** Of a body in pieces, where it is known. */
  bodyBytes?: number;
  /** The credential that was put in. */
  search?: StreamSearch;
  /** Milliseconds without a byte; STREAM_IDLE_MS unless told. */
  idleTimeoutMs?: number;
  /** Milliseconds that an answer may go untaken; 30,000 unless told. */
  takeTimeoutMs?: number;
  /** Bytes of the answer; unbounded unless told, but for an answer that comes compressed. */
  maxResponseBytes?: number;
  /** Aborted when nobody waits for the answer any more: then its connection is destroyed, whatever was sent of the request. */
  left?: AbortSignal | undefined;
};
