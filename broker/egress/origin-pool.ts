/** The connection pool of one origin, with a queue of calls that wait for a connection. */
/// <reference path="./undici-pool.d.ts" />
// Imported directly: the package's index also loads fetch, mocks and caches, which costs 60 ms at start and 2 MB.
import Pool from 'undici/lib/dispatcher/pool.js';
import { type ConnectorOptions, makeConnector } from './connector.ts';
import type { Exchange } from './exchange.ts';
import { FairQueue } from './fair-queue.ts';
import { ENDED_HERE, type Unreachable, type UnreachableCode } from './unreachable.ts';

export type OriginPoolOptions = ConnectorOptions & {
  /** Maximum of concurrent connections. */
  connections: number;
  /** Maximum of queued calls; the next one fails with `busy`. */
  maxWaiting: number;
  /** Maximum bytes of a response's header section. */
  maxHeaderBytes: number;
  keepAliveMs: number;
  outage: OutageWatch | undefined;
};

/** Notified of each successful and each failed call of the origin. */
export type OutageWatch = { failed(error: unknown): void; worked(): void };

const LOCAL_FAILURES = new Set<UnreachableCode>([...ENDED_HERE, 'bad_request', 'address_refused', 'busy', 'too_large']);

/**
 * Calls are queued here and not in undici, so that one that timed out while waiting is dropped; undici would open a connection for it
 * first.
 */
export class OriginPool {
  readonly #pool: Pool;
  readonly #options: OriginPoolOptions;
  #running = 0;
  readonly #waiting = new FairQueue<Exchange>();

  constructor(origin: string, options: OriginPoolOptions) {
    this.#options = options;
    this.#pool = new Pool(origin, {
      connect: makeConnector(options),
      allowH2: false,
      pipelining: 1,
      connections: options.connections,
      maxHeaderSize: options.maxHeaderBytes,
      keepAliveTimeout: options.keepAliveMs,
      // `Exchange.expire` enforces timeouts for the whole exchange, including DNS and queueing.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Reports a result to the outage watch. Failures caused by the broker or client are ignored. */
  note(answer: { kind: 'answer' | 'stream' } | Unreachable): void {
    if (answer.kind !== 'unreachable') this.#options.outage?.worked();
    else if (!LOCAL_FAILURES.has(answer.code))
      this.#options.outage?.failed(answer.cause === undefined ? answer.code : `${answer.code}: ${answer.cause}`);
  }

  get idle(): boolean {
    return this.#running === 0 && this.#waiting.size === 0;
  }

  run(exchange: Exchange): void {
    if (this.#running < this.#options.connections) {
      this.#running++;
      this.#pool.dispatch(exchange.options, exchange);
      return;
    }
    if (this.#waiting.size >= this.#options.maxWaiting) this.#waiting.drop((waiting) => waiting.settled);
    if (this.#waiting.size >= this.#options.maxWaiting) exchange.fail('busy');
    else this.#waiting.push(exchange.family, exchange);
  }

  /** Must be called when undici has finished an exchange. */
  release(): void {
    this.#running--;
    while (this.#running < this.#options.connections) {
      const next = this.#waiting.next();
      if (next === undefined) return;
      if (next.settled) continue;
      this.#running++;
      this.#pool.dispatch(next.options, next);
    }
  }

  /** Closes the pool after the last call; no new call may be started. */
  retire(): void {
    void this.#pool.close();
  }

  /** Destroys every connection immediately. */
  async destroy(): Promise<void> {
    this.#waiting.drop(() => true);
    await this.#pool.destroy();
  }
}
