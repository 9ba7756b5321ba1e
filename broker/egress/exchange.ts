/** One request and its answer, as undici reports them. Bounded in size, in interim answers and, by `expire`, in time. */
import type { Dispatcher } from 'undici';
import { contentCodings, inflate } from './inflate.ts';
import { OutboundFault, type Unreachable, type UnreachableCode, unreachable, unreachableFrom } from './unreachable.ts';

export type Answer =
  | {
      kind: 'answer';
      /** 200 to 599. */
      status: number;
      /** As the upstream sent them, names in lower case. May hold anything; nothing of it goes to an agent unread. */
      headers: Record<string, string | string[]>;
      /** Inflated. Empty when there was none. */
      body: Buffer;
    }
  | Unreachable;

export type ExchangeLimits = {
  /** Bytes of the body, before and after inflating. */
  maxResponseBytes: number;
  /** Milliseconds without a sign of life, waiting for a connection included. */
  idleTimeoutMs: number;
  /** Milliseconds in all. */
  totalTimeoutMs: number;
};

/**
 * Asked with each piece of a body as it comes, and with the headers: true when what has come is all that is wanted. For
 * streams that need not end by themselves.
 */
export type Enough = (chunk: Buffer, headers: Readonly<Record<string, string | string[]>>) => boolean;

/** Real servers send one or two (103 Early Hints); an endless row of them would keep a call alive for ever. */
const MAX_INTERIM_ANSWERS = 16;

export class Exchange implements Dispatcher.DispatchHandler {
  readonly answer: Promise<Answer>;
  /** For `OpenExchanges`. */
  place = -1;
  readonly options: Dispatcher.DispatchOptions;
  readonly #limits: ExchangeLimits;
  readonly #startedAt: number;
  readonly #onEnd: (exchange: Exchange) => void;
  readonly #enough: Enough | undefined;
  #resolve!: (answer: Answer) => void;
  #activeAt: number;
  #controller: Dispatcher.DispatchController | undefined;
  #sent = false;
  #settled = false;
  #ended = false;
  #interim = 0;
  #status = 0;
  #headers: Record<string, string | string[]> = {};
  #chunks: Buffer[] = [];
  #size = 0;

  /**
   * @param now milliseconds of any steady clock; `expire` takes the same one.
   * @param onEnd called once, when undici has let go of the request: its connection is free again.
   * @param enough see `Enough`; without it the body is read to its end.
   */
  constructor(
    options: Dispatcher.DispatchOptions,
    limits: ExchangeLimits,
    now: number,
    onEnd: (exchange: Exchange) => void,
    enough?: Enough,
  ) {
    this.options = options;
    this.#limits = limits;
    this.#startedAt = now;
    this.#activeAt = now;
    this.#onEnd = onEnd;
    this.#enough = enough;
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Whether the answer is known; undici may still be busy with the request. */
  get settled(): boolean {
    return this.#settled;
  }

  /** Gives up when the time is over. */
  expire(now: number): void {
    const { idleTimeoutMs, totalTimeoutMs } = this.#limits;
    if (now - this.#startedAt >= totalTimeoutMs) this.fail('timeout', 'total');
    else if (now - this.#activeAt >= idleTimeoutMs) this.fail('timeout', 'idle');
  }

  /** Gives up: settles the answer and, when the request is on the wire, ends its connection. */
  fail(code: UnreachableCode, cause?: string): void {
    this.#settle(unreachable(code, this.#sent, cause));
    this.#controller?.abort(new OutboundFault(code, cause));
  }

  // What follows is called by undici.

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#settled) {
      // It took too long to get here. Nothing was written yet, and nothing will be.
      controller.abort(new OutboundFault('timeout'));
      return;
    }
    // undici writes right after this, so from here on nobody can tell whether the upstream saw the request.
    this.#sent = true;
    this.#activeAt = performance.now();
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[]>): void {
    this.#activeAt = performance.now();
    if (status < 200) {
      if (++this.#interim > MAX_INTERIM_ANSWERS) this.fail('broken_answer', 'interim_answers');
      return;
    }
    this.#status = status;
    this.#headers = headers;
    // RFC 9110 §15: there is no status above 599.
    if (status > 599) this.fail('broken_answer', 'status');
    else if (Number(headers['content-length']) > this.#limits.maxResponseBytes)
      this.fail('too_large', 'content_length');
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#activeAt = performance.now();
    this.#size += chunk.length;
    if (this.#size > this.#limits.maxResponseBytes) this.fail('too_large', 'body');
    else {
      this.#chunks.push(chunk);
      if (this.#enough?.(chunk, this.#headers)) this.#stop();
    }
  }

  /** Takes what has come for the answer, and ends the connection: the rest is nobody's. */
  #stop(): void {
    this.#settleWith(Buffer.concat(this.#chunks, this.#size));
    this.#controller?.abort(new OutboundFault('closed', 'enough'));
  }

  onResponseEnd(): void {
    const codings = contentCodings(this.#headers['content-encoding']);
    const body = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks, this.#size);
    if (codings === undefined) this.#settle(unreachable('broken_answer', true, 'content_encoding'));
    else if (codings.length === 0 || body.length === 0) this.#settleWith(body);
    else {
      void inflate(body, codings, this.#limits.maxResponseBytes).then((inflated) => {
        if (inflated.ok) this.#settleWith(inflated.body);
        else this.#settle(unreachable(inflated.code, true, 'content_encoding'));
      });
    }
    this.#end();
  }

  onResponseError(_: Dispatcher.DispatchController | null, error: Error): void {
    this.#settle(unreachableFrom(error, this.#sent));
    this.#end();
  }

  #settleWith(body: Buffer): void {
    this.#settle({ kind: 'answer', status: this.#status, headers: this.#headers, body });
  }

  #settle(answer: Answer): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#chunks = [];
    this.#resolve(answer);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#onEnd(this);
  }
}
