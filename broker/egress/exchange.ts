/**
 * One request and its answer, as undici reports them, and the list of exchanges in flight. Subclasses handle the body: buffered-exchange.ts
 * keeps it, streamed-exchange.ts passes it on as it arrives.
 */
import type { Dispatcher } from 'undici';
import { OutboundFault, type Unreachable, type UnreachableCode, unreachable, unreachableFrom } from './unreachable.ts';

/** Real servers send one or two (103 Early Hints); an endless series would keep a call alive forever. */
const MAX_INTERIM_ANSWERS = 16;

export type ResponseHeaders = Record<string, string | string[]>;

/**
 * Whether a body has a transfer coding other than chunked, which undici removes (RFC 9112 section 7). No request allows one, and neither the credential
 * nor what a mask covers would be found in it.
 */
const isTransferCoded = (header: string | string[] | undefined): boolean =>
  header !== undefined && !/^(?:[\s,]|identity|chunked)*$/i.test(String(header));

export abstract class Exchange implements Dispatcher.DispatchHandler {
  /** Index in `OpenExchanges`. */
  place = -1;
  readonly options: Dispatcher.DispatchOptions;
  /** Families take turns when exchanges wait for a connection. */
  readonly family: string;
  /** Time of the last activity. */
  protected activeAt: number;
  protected controller: Dispatcher.DispatchController | undefined;
  protected sent = false;
  readonly #onEnd: (exchange: Exchange) => void;
  #ended = false;
  #interim = 0;

  /**
   * @param now milliseconds of a monotonic clock, the same one that `expire` gets.
   * @param onEnd called once, when undici is done with the request and its connection is free.
   */
  constructor(options: Dispatcher.DispatchOptions, family: string, now: number, onEnd: (exchange: Exchange) => void) {
    this.options = options;
    this.family = family;
    this.activeAt = now;
    this.#onEnd = onEnd;
  }

  /** Whether the answer, or its head, is known; undici may still be processing the request. */
  abstract get settled(): boolean;

  /** Fails with `timeout` when a time limit has passed. */
  abstract expire(now: number): void;

  /** Called with the answer's head. */
  protected abstract onHead(status: number, headers: ResponseHeaders): void;
  protected abstract onChunk(chunk: Buffer): void;
  /** Called when the body is complete. */
  protected abstract onComplete(): void;
  /** Called when the exchange fails. Idempotent. */
  protected abstract onFailure(failure: Unreachable): void;

  /** Resolves the response as a failure and, when the request is on the wire, destroys its connection. */
  fail(code: UnreachableCode, cause?: string): void {
    this.onFailure(unreachable(code, this.sent, cause));
    this.controller?.abort(new OutboundFault(code, cause));
  }

  // Callbacks of undici.

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.settled) {
      // Timed out while waiting for a connection. Nothing was written yet, and nothing will be.
      controller.abort(new OutboundFault('timeout'));
      return;
    }
    // undici writes the request right after this: from here on the upstream may have received it.
    this.sent = true;
    this.activeAt = performance.now();
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    this.activeAt = performance.now();
    if (status < 200) {
      if (++this.#interim > MAX_INTERIM_ANSWERS) this.fail('broken_answer', 'interim_answers');
      return;
    }
    // RFC 9110 §15: statuses end at 599.
    if (status > 599) this.fail('broken_answer', 'status');
    else if (isTransferCoded(headers['transfer-encoding'])) this.fail('broken_answer', 'transfer_encoding');
    else this.onHead(status, headers);
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.activeAt = performance.now();
    this.onChunk(chunk);
  }

  onResponseEnd(): void {
    this.onComplete();
    this.#end();
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.onFailure(unreachableFrom(error, this.sent));
    this.#end();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd(this);
  }
}

/**
 * The exchanges in flight: an array in which every exchange has its index (`place`). A Set that is constantly filled and emptied leaves old
 * hash tables behind, each of which retains its former exchanges until a full garbage collection: 3 KB per call, promoted to V8's old
 * generation.
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
