/** The exchanges in flight. */
import type { Exchange } from './exchange.ts';

/**
 * An array in which every exchange knows its index (`place`). A Set that is constantly filled and emptied leaves old hash
 * tables behind, each of which retains its former exchanges until a full garbage collection: 3 KB of every call, promoted
 * to V8's old generation.
 */
export class OpenExchanges {
  readonly #list: Exchange[] = [];

  get size(): number {
    return this.#list.length;
  }

  /** A copy, so that exchanges may be removed while iterating. */
  all(): Exchange[] {
    return [...this.#list];
  }

  add(exchange: Exchange): void {
    exchange.place = this.#list.length;
    this.#list.push(exchange);
  }

  delete(exchange: Exchange): void {
    const last = this.#list.pop();
    if (last === undefined || last === exchange) return;
    this.#list[exchange.place] = last;
    last.place = exchange.place;
  }
}
