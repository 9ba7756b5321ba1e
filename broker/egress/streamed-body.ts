/** The body of an answer in transit: a bounded queue between the platform and the taker. */

import { sha256Hex } from '../crypto/canonical.ts';
import { countPassedBuffer } from '../runtime/collect-garbage.ts';
import { present } from '../runtime/present.ts';
import type { StreamHash, StreamHasher } from './stream-hasher.ts';

/**
 * How a stream ended. `client_closed`: also when nobody read it, or the broker shut down. `access_ended`: the agent lost the access
 * meanwhile.
 */
export type StreamEnding =
  | 'complete'
  | 'client_closed'
  | 'access_ended'
  | 'upstream_closed'
  | 'idle'
  | 'over_limit'
  | 'credential_found'
  | 'not_masked';

/** Size and hash of the bytes in one direction. */
export type Transferred = { bytes: number; sha256: string };

/** Thrown to the reader of a body that ends early. */
export class StreamBroken extends Error {
  readonly ended: Exclude<StreamEnding, 'complete'>;

  constructor(ended: Exclude<StreamEnding, 'complete'>) {
    super(`The stream ended early: ${ended}.`);
    this.ended = ended;
  }
}

const NO_BYTES = new Uint8Array();

/** Bodies up to this size are buffered, and hashed when the digest is read. Longer ones go to the hashing thread. */
const BUFFERED_BYTES = 64 * 1024;
/** Chunks from this size on are passed to the thread directly; smaller ones are collected. */
const LARGE_PIECE_BYTES = 16 * 1024;

/**
 * Counts and hashes bytes. Most bodies are one chunk or none, which is not copied: a chunk must not be modified after it was added. Small
 * chunks, such as events, are collected, because adding to a hash costs more than copying.
 */
export class Meter {
  readonly #hasher: StreamHasher;
  #only: Uint8Array = NO_BYTES;
  #collected: Uint8Array = NO_BYTES;
  #filled = 0;
  #hash: StreamHash | undefined;
  #bytes = 0;
  #isRead = false;

  constructor(hasher: StreamHasher) {
    this.#hasher = hasher;
  }

  add(chunk: Uint8Array): void {
    if (this.#isRead) return;
    if (this.#bytes === 0) this.#only = chunk;
    else {
      if (this.#only !== NO_BYTES) this.#take(this.#only);
      this.#only = NO_BYTES;
      this.#take(chunk);
    }
    this.#bytes += chunk.length;
    countPassedBuffer(chunk.length);
  }

  /** Back-pressure: nothing may be added before it resolves. Undefined when there is room. */
  room(): Promise<void> | undefined {
    return this.#hash?.room();
  }

  /**
   * Returns size and hash of all bytes so far; call once. Later bytes, such as of a body still being sent after its answer, do not count.
   */
  async read(): Promise<Transferred> {
    this.#isRead = true;
    const collected = this.#collected.subarray(0, this.#filled);
    if (this.#hash === undefined)
      return { bytes: this.#bytes, sha256: sha256Hex(this.#filled > 0 ? collected : this.#only) };
    this.#hash.add(collected);
    return { bytes: this.#bytes, sha256: await this.#hash.digest() };
  }

  #take(chunk: Uint8Array): void {
    if (
      this.#filled + chunk.length <= BUFFERED_BYTES &&
      (this.#hash === undefined || chunk.length < LARGE_PIECE_BYTES)
    ) {
      this.#collect(chunk);
      return;
    }
    this.#hash ??= this.#hasher.open();
    this.#hash.add(this.#collected.subarray(0, this.#filled));
    this.#filled = 0;
    if (chunk.length < LARGE_PIECE_BYTES) this.#collect(chunk);
    else this.#hash.add(chunk);
  }

  #collect(chunk: Uint8Array): void {
    const needed = this.#filled + chunk.length;
    if (needed > this.#collected.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(BUFFERED_BYTES, 4 * needed));
      larger.set(this.#collected.subarray(0, this.#filled));
      this.#collected = larger;
    }
    this.#collected.set(chunk, this.#filled);
    this.#filled = needed;
  }
}

/** Queued bytes from which the platform is paused; it resumes below half of this. */
const HIGH_WATER = 256 * 1024;

/** Receives the flow events of a body. `count`: change in the number of queued bytes. */
export type BodyFlow = { pause(): void; resume(): void; closed(): void; count(bytes: number): void };

/** An answer's body for one reader, to be read to its end or cancelled by `return` (as `for await` does). */
export class StreamedBody implements AsyncIterableIterator<Buffer> {
  readonly #flow: BodyFlow;
  readonly #meter: Meter;
  #queue: Buffer[] = [];
  #size = 0;
  #fullSince: number | undefined;
  #ended: StreamEnding | undefined;
  #wake: (() => void) | undefined;

  constructor(flow: BodyFlow, hasher: StreamHasher) {
    this.#flow = flow;
    this.#meter = new Meter(hasher);
  }

  /** How the body ended; undefined while it is open. */
  get ended(): StreamEnding | undefined {
    return this.#ended;
  }

  /** Since when (of `performance.now()`) the platform is paused for the reader. */
  get fullSince(): number | undefined {
    return this.#fullSince;
  }

  /** Size and hash of what was read so far. Call once. */
  taken(): Promise<Transferred> {
    return this.#meter.read();
  }

  /** Queues a received chunk. */
  add(chunk: Buffer): void {
    if (this.#ended !== undefined || chunk.length === 0) return;
    this.#queue.push(chunk);
    this.#count(chunk.length);
    if (this.#size >= HIGH_WATER && this.#fullSince === undefined) {
      this.#fullSince = performance.now();
      this.#flow.pause();
    }
    this.#wakeTaker();
  }

  /** Ends the body. Queued chunks can still be read, unless the reader left or may read no more. Only the first call counts. */
  end(ended: StreamEnding): void {
    if (this.#ended !== undefined) return;
    this.#ended = ended;
    if (ended === 'client_closed' || ended === 'access_ended') this.#drop();
    this.#wakeTaker();
  }

  async next(): Promise<IteratorResult<Buffer, undefined>> {
    while (this.#queue.length === 0) {
      if (this.#ended === 'complete') return { done: true, value: undefined };
      if (this.#ended !== undefined) throw new StreamBroken(this.#ended);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunk = present(this.#queue.shift(), 'chunk');
    this.#count(-chunk.length);
    this.#meter.add(chunk);
    await this.#meter.room();
    if (this.#fullSince !== undefined && this.#size < HIGH_WATER / 2) {
      this.#fullSince = undefined;
      this.#flow.resume();
    }
    return { done: false, value: chunk };
  }

  async return(): Promise<IteratorResult<Buffer, undefined>> {
    const isTaken = this.#ended === 'complete' && this.#queue.length === 0;
    if (!isTaken) {
      if (this.#ended === undefined || this.#ended === 'complete') this.#ended = 'client_closed';
      this.#drop();
      this.#wakeTaker();
      this.#flow.closed();
    }
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #drop(): void {
    this.#queue = [];
    this.#count(-this.#size);
  }

  #count(bytes: number): void {
    this.#size += bytes;
    this.#flow.count(bytes);
  }

  #wakeTaker(): void {
    this.#wake?.();
    this.#wake = undefined;
  }
}
