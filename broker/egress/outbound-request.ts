/** Types of outgoing requests. */
import type { Enough, ExchangeLimits } from './buffered-exchange.ts';
import type { CallLease } from './call-budget.ts';
import type { StreamSearch } from './streamed-exchange.ts';

export type RequestHead = {
  /** Without userinfo. The query may hold the credential: never log it. */
  url: URL;
  method: string;
  /** Names in lower case and unique, without `host`, `content-length` and hop-by-hop headers, which are added here. */
  headers: Readonly<Record<string, string>>;
  /** Requests with different keys never share a socket (SS-12). For calls with a credential: the connection's id. */
  connectionKey?: string;
  /** The agent family: families take turns when calls wait for a connection. Requests without one count as one family. */
  family?: string;
  /** Allow a public address only, whatever the operator listed: for the target of a redirect, which nobody configured. */
  publicOnly?: boolean;
  /** The lease on which the answer's bytes in memory are counted. */
  lease?: CallLease;
};

export type OutboundRequest = RequestHead & {
  body?: Buffer | string;
  /** Abort when the lease is stopped. Other requests run to their end, so that the audit row has their outcome. */
  endsWithAccess?: boolean;
  /** Stops reading the response early. Only for uncompressed bodies: set `accept-encoding: identity`. */
  enough?: Enough;
} & Partial<ExchangeLimits>;

/** Default idle and total timeouts of a buffered answer. */
export const WHOLE_IDLE_MS = 30_000;
export const WHOLE_TOTAL_MS = 120_000;

/** Default idle timeout of a streamed answer. */
export const STREAM_IDLE_MS = 60_000;

export type StreamRequest = RequestHead & {
  /** An async iterable is read with back-pressure from the upstream; an error that it throws ends the request. */
  body?: Buffer | string | AsyncIterable<Uint8Array>;
  /** Length of an iterable body, when known. */
  bodyBytes?: number;
  /** The injected credential, searched for in the answer. */
  search?: StreamSearch;
  /** Milliseconds without a byte; default STREAM_IDLE_MS. */
  idleTimeoutMs?: number;
  /** Milliseconds that the answer may wait for its reader; default 30,000. */
  takeTimeoutMs?: number;
  /** Most bytes of the answer; unlimited by default, except for a compressed answer. */
  maxResponseBytes?: number;
  /** Aborted when no client waits for the answer any more: the connection is then destroyed, whatever was sent. */
  left?: AbortSignal | undefined;
};
