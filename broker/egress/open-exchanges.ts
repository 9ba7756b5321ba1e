/** The exchanges under way. */
import type { Exchange } from './exchange.ts';

/**
 * A list in which every exchange knows its `place`. A Set does the same, but one that is filled and emptied all the time
 * leaves tables behind, and each keeps the exchanges that were in it, with all they hold, until a full collection: 3 KB of
 * every call, copied and promoted.
 */
export class OpenExchanges {
  readonly #list: Exchange[] = [];

  get size(): number {
    return this.#list.length;
  }

  /** As they are now: whoever goes through them may make them leave. */
  all(): Exchange[] {
    return [...this.#list];
  }

  add(exchange: Exchange): void {
    exchange.place = this.#list.length;
    this.#list.push(exchange);
  }

  delete(exchange: Exchange): void {
    const last = this.#list.pop()!;
    if (last === exchange) return;
    this.#list[exchange.place] = last;
    last.place = exchange.place;
  }
}
