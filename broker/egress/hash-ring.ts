/**
 * Passes bytes to the hashing thread through shared memory: a ring of slots with one producer and one consumer. Posting 64 KiB as a message
 * takes 32 µs of the producer, hashing them 36, copying them into the ring 14.
 */

/** The largest chunk that a socket delivers. */
export const SLOT_BYTES = 64 * 1024;
export const SLOTS = 32;
/**
 * Filled slots after which the consumer is woken; the producer is woken when half of all are free. Waking per slot made both threads wait
 * for each other.
 */
const BATCH = 8;

/** Indices of counters: all entries ever produced and consumed, modulo 2^32. */
const PRODUCED = 0;
const CONSUMED = 1;
/** From this index on, two numbers per slot: the stream, and the number of bytes or a command (DIGEST, FORGET). */
const FIRST = 2;
const CONTROL_BYTES = (FIRST + 2 * SLOTS) * Int32Array.BYTES_PER_ELEMENT;

/** Command in place of a byte count: return the digest, then drop the stream. */
export const DIGEST = -1;
/** Command: drop the stream without a digest. */
export const FORGET = -2;

export const hashMemory = (): SharedArrayBuffer => new SharedArrayBuffer(CONTROL_BYTES + SLOTS * SLOT_BYTES);

export type HashEntry = { stream: number; bytes: Uint8Array } | { stream: number; want: typeof DIGEST | typeof FORGET };

/** The producer or the consumer side of a ring. */
export class HashRing {
  readonly #control: Int32Array<SharedArrayBuffer>;
  readonly #slots: Uint8Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, CONTROL_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#slots = new Uint8Array(memory, CONTROL_BYTES);
  }

  /** Producer: copies at most SLOT_BYTES into a slot. Returns false when the ring is full. */
  offer(entry: HashEntry): boolean {
    const produced = Atomics.load(this.#control, PRODUCED);
    const waiting = (produced - Atomics.load(this.#control, CONSUMED)) | 0;
    if (waiting === SLOTS) return false;
    const slot = produced & (SLOTS - 1);
    if ('bytes' in entry) this.#slots.set(entry.bytes, slot * SLOT_BYTES);
    this.#control[FIRST + 2 * slot] = entry.stream;
    this.#control[FIRST + 2 * slot + 1] = 'bytes' in entry ? entry.bytes.length : entry.want;
    Atomics.store(this.#control, PRODUCED, (produced + 1) | 0);
    // Less than a batch need not be processed before the digest is requested.
    if (waiting + 1 >= BATCH || !('bytes' in entry)) Atomics.notify(this.#control, PRODUCED);
    return true;
  }

  /** Producer: resolves when a full ring has room again. */
  async room(): Promise<void> {
    const consumed = (Atomics.load(this.#control, PRODUCED) - SLOTS) | 0;
    const { value } = Atomics.waitAsync(this.#control, CONSUMED, consumed);
    await value;
  }

  /** Producer: resolves a pending `room` after the consumer ended. */
  giveUp(): void {
    Atomics.notify(this.#control, CONSUMED);
  }

  /** Consumer: returns the next entry, or undefined. Its bytes are in the slot and must be read before `free`. */
  take(): HashEntry | undefined {
    const consumed = Atomics.load(this.#control, CONSUMED);
    if (Atomics.load(this.#control, PRODUCED) === consumed) return undefined;
    const slot = consumed & (SLOTS - 1);
    const stream = this.#control[FIRST + 2 * slot] ?? 0;
    const length = this.#control[FIRST + 2 * slot + 1] ?? 0;
    if (length === DIGEST || length === FORGET) return { stream, want: length };
    return { stream, bytes: this.#slots.subarray(slot * SLOT_BYTES, slot * SLOT_BYTES + length) };
  }

  /** Consumer: frees the slot of the taken entry. */
  free(): void {
    const consumed = Atomics.add(this.#control, CONSUMED, 1) + 1;
    const waiting = (Atomics.load(this.#control, PRODUCED) - consumed) | 0;
    if (waiting <= SLOTS / 2) Atomics.notify(this.#control, CONSUMED);
  }

  /** Consumer: resolves when there is an entry. Unlike `Atomics.wait`, it does not keep the thread alive. */
  async entry(): Promise<void> {
    const { value } = Atomics.waitAsync(this.#control, PRODUCED, Atomics.load(this.#control, CONSUMED));
    await value;
  }
}
