/**
 * Bytes on their way to the thread that hashes, in memory that both threads see: a ring of slots with one producer and one consumer. To post 64 KiB as a
 * message takes 32 µs of the producer, to hash them 36, to copy them into the ring 14.
 */

/** What a socket is read by, at most. */
export const SLOT_BYTES = 64 * 1024;
export const SLOTS = 32;
/** Slots for which the consumer is woken; the producer is when half of all are free. To be woken for each slot made both threads wait for each other. */
const BATCH = 8;

/** Of all ever produced and consumed, modulo 2^32. */
const PRODUCED = 0;
const CONSUMED = 1;
/** From here on two numbers for each slot: whose bytes, and how many, or what else is wanted of the stream. */
const FIRST = 2;
const CONTROL_BYTES = (FIRST + 2 * SLOTS) * Int32Array.BYTES_PER_ELEMENT;

/** In place of a number of bytes: the digest of all so far, after which the stream is forgotten. */
export const DIGEST = -1;
/** Nobody wants to know. */
export const FORGET = -2;

export const hashMemory = (): SharedArrayBuffer => new SharedArrayBuffer(CONTROL_BYTES + SLOTS * SLOT_BYTES);

export type HashEntry = { stream: number; bytes: Uint8Array } | { stream: number; want: typeof DIGEST | typeof FORGET };

/** Either end of a ring. */
export class HashRing {
  readonly #control: Int32Array<SharedArrayBuffer>;
  readonly #slots: Uint8Array<SharedArrayBuffer>;

  constructor(memory: SharedArrayBuffer) {
    this.#control = new Int32Array(memory, 0, CONTROL_BYTES / Int32Array.BYTES_PER_ELEMENT);
    this.#slots = new Uint8Array(memory, CONTROL_BYTES);
  }

  /** Of the producer. Copies at most SLOT_BYTES. False: there is no room. */
  offer(entry: HashEntry): boolean {
    const produced = Atomics.load(this.#control, PRODUCED);
    const waiting = (produced - Atomics.load(this.#control, CONSUMED)) | 0;
    if (waiting === SLOTS) return false;
    const slot = produced & (SLOTS - 1);
    if ('bytes' in entry) this.#slots.set(entry.bytes, slot * SLOT_BYTES);
    this.#control[FIRST + 2 * slot] = entry.stream;
    this.#control[FIRST + 2 * slot + 1] = 'bytes' in entry ? entry.bytes.length : entry.want;
    Atomics.store(this.#control, PRODUCED, (produced + 1) | 0);
    // What waits without a batch is of no use to anybody before the digest is asked for.
    if (waiting + 1 >= BATCH || !('bytes' in entry)) Atomics.notify(this.#control, PRODUCED);
    return true;
  }

  /** Of the producer, when there was no room: resolves when there is. */
  async room(): Promise<void> {
    const consumed = (Atomics.load(this.#control, PRODUCED) - SLOTS) | 0;
    const { value } = Atomics.waitAsync(this.#control, CONSUMED, consumed);
    await value;
  }

  /** Of the producer, when the consumer ended: nobody else would resolve `room`. */
  giveUp(): void {
    Atomics.notify(this.#control, CONSUMED);
  }

  /** Of the consumer: the next entry; undefined: there is none. Its bytes are those of the slot, to be read before it is freed. */
  take(): HashEntry | undefined {
    const consumed = Atomics.load(this.#control, CONSUMED);
    if (Atomics.load(this.#control, PRODUCED) === consumed) return undefined;
    const slot = consumed & (SLOTS - 1);
    const stream = this.#control[FIRST + 2 * slot] ?? 0;
    const length = this.#control[FIRST + 2 * slot + 1] ?? 0;
    if (length === DIGEST || length === FORGET) return { stream, want: length };
    return { stream, bytes: this.#slots.subarray(slot * SLOT_BYTES, slot * SLOT_BYTES + length) };
  }

  /** Of the consumer: what was taken is done with. */
  free(): void {
    const consumed = Atomics.add(this.#control, CONSUMED, 1) + 1;
    const waiting = (Atomics.load(this.#control, PRODUCED) - consumed) | 0;
    if (waiting <= SLOTS / 2) Atomics.notify(this.#control, CONSUMED);
  }

  /** Of the consumer: resolves when there is an entry. It does not keep a thread from ending, as `Atomics.wait` does. */
  async entry(): Promise<void> {
    const { value } = Atomics.waitAsync(this.#control, PRODUCED, Atomics.load(this.#control, CONSUMED));
    await value;
  }
}
