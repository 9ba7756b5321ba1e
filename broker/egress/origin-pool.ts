/** The connections to one origin, and the calls that wait for one. */
import { Pool } from 'undici';
import { type ConnectorOptions, makeConnector } from './connector.ts';
import type { Exchange } from './exchange.ts';
import { FairQueue } from './fair-queue.ts';
import type { Unreachable, UnreachableCode } from './unreachable.ts';

export type OriginPoolOptions = ConnectorOptions & {
  /** Connections at the same time. */
  connections: number;
  /** Calls that may wait for one; the next is `busy`. */
  maxWaiting: number;
  /** Bytes of an answer's header section. */
  maxHeaderBytes: number;
  keepAliveMs: number;
  outage: OutageWatch | undefined;
};

/** Told of each call that got an answer of the origin, and of each that got none. */
export type OutageWatch = { failed(error: unknown): void; worked(): void };

const OURS = new Set<UnreachableCode>(['bad_request', 'address_refused', 'busy', 'closed', 'too_large']);

/**
 * We queue in front of undici and never in it: a call that gave up while it waited is then simply dropped, where undici
 * would connect for it first.
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
      // `Exchange.expire` does this for the whole exchange, DNS and waiting included.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Notes what became of a call. What ended on our side says nothing of the origin. */
  note(answer: { kind: 'answer' | 'stream' } | Unreachable): void {
    if (answer.kind !== 'unreachable') this.#options.outage?.worked();
    else if (!OURS.has(answer.code))
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

  /** To be called when undici has let go of an exchange. */
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

  /** Closes idle connections when the last call is done; nothing new may be run. */
  retire(): void {
    void this.#pool.close();
  }

  /** Ends every connection now. */
  async destroy(): Promise<void> {
    this.#waiting.drop(() => true);
    await this.#pool.destroy();
  }
}
