/** An exchange whose answer is buffered. Limited in size and, by `expire`, in time. */
import type { Dispatcher } from 'undici';
import type { CallLease } from './call-lease.ts';
import { Exchange, type ResponseHeaders } from './exchange.ts';
import { type Coding, contentCodings, inflate } from './inflate.ts';
import { OutboundFault, type Unreachable, unreachable } from './unreachable.ts';

export type Answer =
  | {
      kind: 'answer';
      /** 200 to 599. */
      status: number;
      /** As the upstream sent them, names in lower case. Untrusted: nothing of it reaches an agent without `readAnswer`. */
      headers: ResponseHeaders;
      /** Decompressed; empty when the response has no body. */
      body: Buffer;
    }
  | Unreachable;

export type ExchangeLimits = {
  /** Bytes of the body, before and after decompression. */
  maxResponseBytes: number;
  /** Milliseconds without activity, including the wait for a connection. */
  idleTimeoutMs: number;
  /** Milliseconds in total. */
  totalTimeoutMs: number;
};

/**
 * Called with each chunk of the body and the headers. Returns true when enough was received: for streams that may not end by themselves.
 */
export type Enough = (chunk: Buffer, headers: Readonly<ResponseHeaders>) => boolean;

/** Most answers decompress to less than TYPICAL_RATIO times their size plus TYPICAL_BYTES. */
const TYPICAL_RATIO = 16;
const TYPICAL_BYTES = 64 * 1024;

/** Without `enough` the body is read to its end. `lease`: the bytes of the answer are counted on it. */
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

  /** Resolves when more may be read. This wait does not count as idle time of the upstream. */
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

  /** Uses the chunks received so far as the answer and aborts the connection. */
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

  /** Decompresses up to the usual size first; a larger result, up to a thousand times as large, waits for room in the budget. */
  async #inflate(body: Buffer, codings: readonly Coding[]): Promise<void> {
    const max = this.#limits.maxResponseBytes;
    const usual = Math.min(max, body.length * TYPICAL_RATIO + TYPICAL_BYTES);
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
