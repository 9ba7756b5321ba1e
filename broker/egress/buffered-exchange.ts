/** An exchange whose answer is kept whole. Bounded in size and, by `expire`, in time. */
import type { Dispatcher } from 'undici';
import type { CallLease } from './call-budget.ts';
import { Exchange, type ResponseHeaders } from './exchange.ts';
import { type Coding, contentCodings, inflate } from './inflate.ts';
import { OutboundFault, type Unreachable, unreachable } from './unreachable.ts';

export type Answer =
  | {
      kind: 'answer';
      /** 200 to 599. */
      status: number;
      /** As the upstream sent them, names in lower case. May hold anything; nothing of it goes to an agent unread. */
      headers: ResponseHeaders;
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
export type Enough = (chunk: Buffer, headers: Readonly<ResponseHeaders>) => boolean;

/** Most answers inflate to less than this many times their size, and this many bytes more. */
const USUAL_RATIO = 16;
const USUAL_BYTES = 64 * 1024;

/** `enough`: see there; without it the body is read to its end. `lease`: what the answer's bytes are counted on. */
export type BufferedOptions = { limits: ExchangeLimits; enough?: Enough | undefined; lease?: CallLease | undefined };

export class BufferedExchange extends Exchange {
  readonly answer: Promise<Answer>;
  readonly #limits: ExchangeLimits;
  readonly #startedAt: number;
  readonly #enough: Enough | undefined;
  readonly #lease: CallLease | undefined;
  #isWaitingForRoom = false;
  #resolve!: (answer: Answer) => void;
  #settled = false;
  #status = 0;
  #headers: ResponseHeaders = {};
  #chunks: Buffer[] = [];
  #size = 0;

  /** As `Exchange`. */
  constructor(
    options: Dispatcher.DispatchOptions,
    family: string,
    { limits, enough, lease }: BufferedOptions,
    now: number,
    onEnd: (exchange: Exchange) => void,
  ) {
    super(options, family, now, onEnd);
    this.#limits = limits;
    this.#startedAt = now;
    this.#enough = enough;
    this.#lease = lease;
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get settled(): boolean {
    return this.#settled;
  }

  expire(now: number): void {
    const { idleTimeoutMs, totalTimeoutMs } = this.#limits;
    if (now - this.#startedAt >= totalTimeoutMs) this.fail('timeout', 'total');
    else if (now - this.activeAt >= idleTimeoutMs && !this.#isWaitingForRoom) this.fail('timeout', 'idle');
  }

  protected onHead(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
    if (Number(headers['content-length']) > this.#limits.maxResponseBytes) this.fail('too_large', 'content_length');
  }

  protected onChunk(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limits.maxResponseBytes) {
      this.fail('too_large', 'body');
      return;
    }
    this.#lease?.count(chunk.length);
    this.#chunks.push(chunk);
    if (this.#enough?.(chunk, this.#headers)) this.#stop();
    else if (this.#lease?.hasRoom === false) {
      this.controller?.pause();
      void this.#roomOn(this.#lease).then(() => this.controller?.resume());
    }
  }

  /** Resolves when more may be read. Waiting for it is not the upstream's silence. */
  #roomOn(lease: CallLease): Promise<void> {
    this.#isWaitingForRoom = true;
    return new Promise((resolve) => {
      lease.whenRoom(() => {
        this.#isWaitingForRoom = false;
        this.activeAt = performance.now();
        resolve();
      });
    });
  }

  /** Takes what has come for the answer, and ends the connection: the rest is nobody's. */
  #stop(): void {
    this.#settleWith(Buffer.concat(this.#chunks, this.#size));
    this.controller?.abort(new OutboundFault('closed', 'enough'));
  }

  protected onComplete(): void {
    const codings = contentCodings(this.#headers['content-encoding']);
    const [first] = this.#chunks;
    const body = first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#size);
    if (codings === undefined) this.onFailure(unreachable('broken_answer', true, 'content_encoding'));
    else if (codings.length === 0 || body.length === 0) this.#settleWith(body);
    else void this.#inflate(body, codings);
  }

  /** Under the usual size first: what could be a thousand times as large is inflated when there is room for that. */
  async #inflate(body: Buffer, codings: readonly Coding[]): Promise<void> {
    const max = this.#limits.maxResponseBytes;
    const usual = Math.min(max, body.length * USUAL_RATIO + USUAL_BYTES);
    let inflated = await this.#inflateTo(usual, body, codings);
    if (!inflated.ok && inflated.code === 'too_large' && usual < max) {
      const lease = this.#lease;
      if (lease !== undefined) while (!this.#settled && !lease.hasRoom) await this.#roomOn(lease);
      if (!this.#settled) inflated = await this.#inflateTo(max, body, codings);
    }
    if (inflated.ok) this.#settleWith(inflated.body);
    else this.onFailure(unreachable(inflated.code, true, 'content_encoding'));
  }

  async #inflateTo(max: number, body: Buffer, codings: readonly Coding[]) {
    this.#lease?.count(max);
    const inflated = await inflate(body, codings, max);
    this.#lease?.count((inflated.ok ? inflated.body.length - body.length : 0) - max);
    return inflated;
  }

  protected onFailure(failure: Unreachable): void {
    this.#settle(failure);
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
}
