/**
 * All outgoing traffic goes through `Outbound.send`, `Outbound.stream` or `Outbound.dial`. No redirects, no proxy from the usual
 * environment variables, no retries (a second effect for one decision is worse than an error), no unchecked address. If the rules cannot be
 * read, nothing can be sent.
 */
import dns from 'node:dns';
import type { Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { type AnswerReader, makeAnswerReader } from './answers/answer-reader.ts';
import { BUDGET } from './budget-limits.ts';
import { type Answer, BufferedExchange, type ExchangeLimits } from './buffered-exchange.ts';
import type { ConnectorOptions, Lookup } from './connector.ts';
import { type DialTo, dial } from './dial.ts';
import { type Exchange, OpenExchanges } from './exchange.ts';
import { OriginPool, type OutageWatch } from './origin-pool.ts';
import {
  type OutboundRequest,
  type RequestHead,
  requestProblem,
  STREAM_IDLE_MS,
  type StreamRequest,
  WHOLE_IDLE_MS,
  WHOLE_TOTAL_MS,
} from './outbound-request.ts';
import { makeStreamHasher } from './stream-hasher.ts';
import { type StreamedAnswer, StreamedExchange } from './streamed-exchange.ts';
import { checkTarget, readTargetRules, type TargetRules } from './target.ts';
import { type Unreachable, unreachable } from './unreachable.ts';

export type { Answer } from './buffered-exchange.ts';
export type { StreamedAnswer } from './streamed-exchange.ts';
export type { Unreachable, UnreachableCode } from './unreachable.ts';

export type Outbound = {
  /** Sends one request, once. Never rejects; every failure is `unreachable`. */
  send(request: OutboundRequest): Promise<Answer>;
  /** The same, but resolves with the head; the body follows as it is read. */
  stream(request: StreamRequest): Promise<StreamedAnswer | Unreachable>;
  /** Opens a plain connection, under the same rules, for a protocol that is not HTTP. Never rejects. */
  dial(to: DialTo): Promise<Socket | Unreachable>;
  /** Reads an answer and redacts the credential: a large one on a worker thread (answer-reader.ts). */
  read: AnswerReader['read'];
  /** Aborts requests in flight (`closed`) and destroys all connections. Later requests fail with `closed`. */
  close(): Promise<void>;
};

export type OutboundOptions = {
  /** `host:port` of origins that are allowed although private, on another port, or over http; `otherPorts`: on another port only. */
  allowPrivate: readonly string[];
  otherPorts?: readonly string[];
  /** `host:port` of this broker's listener and base URL. Always refused. */
  own?: readonly string[];
  /** Resolves names; `dns.lookup` by default. */
  lookup?: Lookup;
  /** PEM certificates to trust instead of the system's. */
  ca?: string;
  proxy?: ConnectorOptions['proxy'];
  connectTimeoutMs?: number;
  /** By default as many as concurrent calls per process, so that long streams do not delay other calls. */
  connectionsPerOrigin?: number;
  maxWaitingPerOrigin?: number;
  maxHeaderBytes?: number;
  keepAliveMs?: number;
  /** Limit of connection pools; the least recently used idle one is evicted. */
  maxOrigins?: number;
  /** Tracks whether an origin is reachable, for the log. */
  watch?: (origin: string) => OutageWatch;
} & Partial<ExchangeLimits>;

const ACCEPTED = 'gzip, br';
const STREAM_TAKE_MS = 30_000;

/** Creates the client. Throws when an entry of `allowPrivate` or `own` is not `host:port` in normal form. */
export function makeOutbound(options: OutboundOptions): Outbound {
  const rules = readTargetRules(options);
  const publicRules: TargetRules = { ...rules, allowPrivate: new Set() };
  const limits: ExchangeLimits = {
    maxResponseBytes: options.maxResponseBytes ?? 10 * 1024 * 1024,
    idleTimeoutMs: options.idleTimeoutMs ?? WHOLE_IDLE_MS,
    totalTimeoutMs: options.totalTimeoutMs ?? WHOLE_TOTAL_MS,
  };
  const maxOrigins = options.maxOrigins ?? 256;
  const connecting = new Set<Socket>();
  /** In least recently used order. */
  const pools = new Map<string, OriginPool>();
  let lastUsed: string | undefined;
  let closed = false;

  const { lookup = dns.lookup, proxy, connectTimeoutMs: timeoutMs = 10_000 } = options;
  const connection = { rules, connecting, lookup, proxy, timeoutMs };
  const reader = makeAnswerReader();
  const hasher = makeStreamHasher();
  /** Exchanges in flight. */
  const open = new OpenExchanges();
  const tickMs = Math.max(5, Math.min(1_000, Math.min(limits.idleTimeoutMs, limits.totalTimeoutMs) / 8));
  // One coarse timer for all exchanges instead of two precise ones each; it runs only while there are any.
  let timer: NodeJS.Timeout | undefined;
  const tick = () => {
    timer = undefined;
    const now = performance.now();
    for (const exchange of open.all()) exchange.expire(now);
    if (open.size > 0) timer = setTimeout(tick, tickMs);
  };

  const poolFor = (request: RequestHead, key: string): OriginPool | string => {
    const known = pools.get(key);
    if (known !== undefined) {
      if (lastUsed !== key) {
        pools.delete(key);
        pools.set(key, known);
        lastUsed = key;
      }
      return known;
    }
    const usedRules = request.publicOnly ? publicRules : rules;
    const target = checkTarget(request.url, usedRules);
    if (!target.ok) return target.refused;
    const pool = new OriginPool(request.url.origin, {
      ...connection,
      target,
      rules: usedRules,
      ca: options.ca,
      connections: options.connectionsPerOrigin ?? BUDGET.all.calls + BUDGET.reserve.calls,
      maxWaiting: options.maxWaitingPerOrigin ?? 1_000,
      maxHeaderBytes: options.maxHeaderBytes ?? 64 * 1024,
      keepAliveMs: options.keepAliveMs ?? 4_000,
      outage: options.watch?.(request.url.origin),
    });
    for (const [name, other] of pools) {
      if (pools.size < maxOrigins) break;
      if (!other.idle) continue;
      pools.delete(name);
      other.retire();
    }
    pools.set(key, pool);
    lastUsed = key;
    return pool;
  };

  /** Returns the pool of an allowed request, or why it is refused. */
  const admit = (request: OutboundRequest | StreamRequest): OriginPool | Unreachable => {
    if (closed) return unreachable('closed', false);
    if (request.lease?.stopped) return unreachable('access_ended', false);
    const problem = requestProblem(request);
    if (problem !== undefined) return unreachable('bad_request', false, problem);
    const key = `${request.connectionKey ?? ''} ${request.url.origin}${request.publicOnly ? ' public' : ''}`;
    const pool = poolFor(request, key);
    return typeof pool === 'string' ? unreachable('address_refused', false, pool) : pool;
  };

  const run = (pool: OriginPool, exchange: Exchange) => {
    open.add(exchange);
    timer ??= setTimeout(tick, tickMs);
    pool.run(exchange);
  };

  return {
    async send(request) {
      const pool = admit(request);
      if (!(pool instanceof OriginPool)) return pool;
      const exchange = new BufferedExchange(
        optionsOf(request, ACCEPTED),
        request.family ?? '',
        {
          limits: {
            maxResponseBytes: request.maxResponseBytes ?? limits.maxResponseBytes,
            idleTimeoutMs: request.idleTimeoutMs ?? limits.idleTimeoutMs,
            totalTimeoutMs: request.totalTimeoutMs ?? limits.totalTimeoutMs,
          },
          enough: request.enough,
          lease: request.lease,
        },
        performance.now(),
        () => pool.release(),
      );
      const ending = request.endsWithAccess ? request.lease : undefined;
      const forget = ending?.whenStopped(() => exchange.fail('access_ended'));
      run(pool, exchange);
      const answer = await exchange.answer;
      forget?.();
      open.delete(exchange);
      pool.note(answer);
      return answer;
    },

    async stream(request) {
      const { left, lease } = request;
      const pool = admit(request);
      if (!(pool instanceof OriginPool)) return pool;
      if (left?.aborted) return unreachable('client_closed', false);
      const onLeft = () => exchange.fail('client_closed');
      const forget = lease?.whenStopped(() => exchange.fail('access_ended'));
      const exchange = new StreamedExchange(
        optionsOf(request, 'identity'),
        request.family ?? '',
        {
          limits: {
            idleTimeoutMs: request.idleTimeoutMs ?? STREAM_IDLE_MS,
            takeTimeoutMs: request.takeTimeoutMs ?? STREAM_TAKE_MS,
            maxResponseBytes: request.maxResponseBytes ?? Number.POSITIVE_INFINITY,
            maxInflatedBytes: request.maxResponseBytes ?? limits.maxResponseBytes,
          },
          search: request.search,
          lease,
          hasher,
        },
        performance.now(),
        () => pool.release(),
        () => {
          open.delete(exchange);
          left?.removeEventListener('abort', onLeft);
          forget?.();
        },
      );
      left?.addEventListener('abort', onLeft);
      run(pool, exchange);
      const answer = await exchange.answer;
      pool.note(answer);
      return answer;
    },

    dial: (to) => (closed ? Promise.resolve(unreachable('closed', false)) : dial(to, connection)),

    read: reader.read,

    async close() {
      closed = true;
      clearTimeout(timer);
      for (const exchange of open.all()) exchange.fail('closed');
      for (const socket of connecting) socket.destroy();
      hasher.close();
      await Promise.all([reader.close(), ...[...pools.values()].map((pool) => pool.destroy())]);
      pools.clear();
    },
  };
}

function optionsOf(request: OutboundRequest | StreamRequest, accepted: string): Dispatcher.DispatchOptions {
  const { url, method, body } = request;
  const headers = { ...request.headers };
  headers['accept-encoding'] ??= accepted;
  if ('bodyBytes' in request && request.bodyBytes !== undefined) headers['content-length'] = `${request.bodyBytes}`;
  // undici accepts any iterable; its types list only some.
  return {
    path: url.pathname + url.search,
    method,
    headers,
    body: (body ?? null) as Buffer | null,
  };
}
