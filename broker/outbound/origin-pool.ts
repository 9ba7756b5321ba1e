/** The connections to one origin, and the calls that wait for one. */
import { Pool } from 'undici';
import { type ConnectorOptions, makeConnector } from './connector.ts';
import type { Exchange } from './exchange.ts';

export type OriginPoolOptions = ConnectorOptions & {
  /** Connections at the same time. */
  connections: number;
  /** Calls that may wait for one; the next is `busy`. */
  maxWaiting: number;
  /** Bytes of an answer's header section. */
  maxHeaderBytes: number;
  keepAliveMs: number;
};

/**
 * We queue in front of undici and never in it: a call that gave up while it waited is then simply dropped, where undici
 * would connect for it first.
 */
export class OriginPool {
  readonly #pool: Pool;
  readonly #options: OriginPoolOptions;
  #running = 0;
  #waiting: Exchange[] = [];

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

  get idle(): boolean {
    return this.#running === 0 && this.#waiting.length === 0;
  }

  run(exchange: Exchange): void {
    if (this.#running < this.#options.connections) {
      this.#running++;
      this.#pool.dispatch(exchange.options, exchange);
      return;
    }
    if (this.#waiting.length >= this.#options.maxWaiting) {
      this.#waiting = this.#waiting.filter((waiting) => !waiting.settled);
    }
    if (this.#waiting.length >= this.#options.maxWaiting) exchange.fail('busy');
    else this.#waiting.push(exchange);
  }

  /** To be called when undici has let go of an exchange. */
  release(): void {
    this.#running--;
    while (this.#running < this.#options.connections) {
      const next = this.#waiting.shift();
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
    this.#waiting = [];
    await this.#pool.destroy();
  }
}
