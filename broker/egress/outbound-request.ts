/** Types of outgoing requests. */
import type { Enough, ExchangeLimits } from './buffered-exchange.ts';
import type { CallLease } from './call-lease.ts';
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

const METHODS = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD']);

/** Set by undici from the URL and the body, or hop-by-hop (RFC 9110 §7.6.1). */
const SET_BY_UNDICI = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'expect',
  'te',
  'trailer',
  '__proto__',
]);

/** RFC 9110 §5.6.2 (token), in lower case. */
const NAME = /^[a-z0-9!#$%&'*+\-.^_`|~]+$/;
/** RFC 9110 §5.5 without obs-text and without leading and trailing spaces, so that the checked value is sent unchanged. */
const VALUE = /^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/;
const PATH = /^\/[\x21-\x7e]*$/;

/**
 * Returns a code for why undici would throw on the request, or undefined: a pool leaks a connection slot for each such request. Contains no
 * value, which may be a credential.
 */
export function requestProblem(request: OutboundRequest | StreamRequest): string | undefined {
  if (!METHODS.has(request.method)) return 'method';
  const { pathname, search, username, password } = request.url;
  if (username !== '' || password !== '') return 'userinfo';
  if (!PATH.test(pathname + search)) return 'path';
  if (request.body !== undefined && (request.method === 'GET' || request.method === 'HEAD')) return 'body';
  for (const [name, value] of Object.entries(request.headers)) {
    if (!NAME.test(name) || SET_BY_UNDICI.has(name)) return 'header_name';
    if (typeof value !== 'string' || !VALUE.test(value)) return 'header_value';
  }
  return undefined;
}

/** Whether a text is a valid header value as it is. */
export function isHeaderValue(text: string): boolean {
  return VALUE.test(text);
}
