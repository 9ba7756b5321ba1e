/** Hashes long streams on one worker thread per process, started by the first of them. */
import { Worker } from 'node:worker_threads';
import { DIGEST, FORGET, type HashEntry, HashRing, hashMemory, SLOT_BYTES } from './hash-ring.ts';
import type { FromHashThread } from './hash-thread.ts';

const THREAD = new URL(`./hash-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Heap limits of the thread, in MB: it stores only hash states, and does not need V8's default young generation. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

export type StreamHash = {
  /** Adds a copy of the bytes. */
  add(bytes: Uint8Array): void;
  /**
   * Returns a promise while added bytes wait in memory for the ring (back-pressure): add nothing before it resolves. Undefined when nothing
   * waits.
   */
  room(): Promise<void> | undefined;
  /**
   * Returns the SHA-256 of all added bytes, in hexadecimal; call once, at the end. Rejects when the thread ended, for example out of
   * memory.
   */
  digest(): Promise<string>;
};

export type StreamHasher = {
  open(): StreamHash;
  /** Ends the thread after the open streams have finished. */
  close(): void;
};

type Wanted = { resolve: (sha256: string) => void; reject: (error: Error) => void };

class HashingThread {
  readonly #worker: Worker;
  readonly #ring: HashRing;
  readonly #open = new Set<number>();
  readonly #wanted = new Map<number, Wanted>();
  /** Entries that did not fit into the ring. */
  #behind: HashEntry[] = [];
  #catchingUp: Promise<void> | undefined;
  #last = 0;
  #isClosing = false;
  #ended: Error | undefined;

  /** @param onEnd called when the thread ends by itself. */
  constructor(onEnd: () => void) {
    const memory = hashMemory();
    this.#ring = new HashRing(memory);
    this.#worker = new Worker(THREAD, { workerData: memory, resourceLimits: LIMITS });
    this.#worker.on('message', ({ stream, sha256 }: FromHashThread) => {
      this.#wanted.get(stream)?.resolve(sha256);
      this.#wanted.delete(stream);
      if (this.#wanted.size === 0) this.#worker.unref();
      this.#done(stream);
    });
    const ended = (cause: unknown) => {
      this.#fail(cause);
      onEnd();
    };
    this.#worker.on('error', ended);
    this.#worker.on('exit', ended);
    // Must come last: adding a listener makes the thread keep the process alive again.
    this.#worker.unref();
  }

  open(): number {
    this.#last = (this.#last + 1) | 0;
    this.#open.add(this.#last);
    return this.#last;
  }

  put(entry: HashEntry): void {
    if (this.#ended || (this.#behind.length === 0 && this.#ring.offer(entry))) return;
    // An explicit copy: `slice` of a Buffer would share its memory.
    this.#behind.push('bytes' in entry ? { ...entry, bytes: new Uint8Array(entry.bytes) } : entry);
    this.#catchingUp ??= this.#catchUp();
  }

  room(): Promise<void> | undefined {
    return this.#catchingUp;
  }

  digest(stream: number): Promise<string> {
    if (this.#ended) return Promise.reject(this.#ended);
    // The process must not exit before the digest, even when its sockets are already closed.
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#wanted.set(stream, { resolve, reject });
      this.put({ stream, want: DIGEST });
    });
  }

  forget(stream: number): void {
    if (!this.#open.has(stream)) return;
    this.put({ stream, want: FORGET });
    this.#done(stream);
  }

  close(): void {
    this.#isClosing = true;
    this.#endWhenIdle();
  }

  #done(stream: number): void {
    this.#open.delete(stream);
    this.#endWhenIdle();
  }

  #endWhenIdle(): void {
    if (this.#isClosing && this.#open.size === 0) void this.#worker.terminate();
  }

  async #catchUp(): Promise<void> {
    for (let at = 0; at < this.#behind.length && !this.#ended; ) {
      await this.#ring.room();
      for (let entry = this.#behind[at]; entry !== undefined && this.#ring.offer(entry); entry = this.#behind[at]) at++;
    }
    this.#behind = [];
    this.#catchingUp = undefined;
  }

  #fail(cause: unknown): void {
    this.#ended ??= new Error('the thread that hashes streams ended', { cause });
    for (const { reject } of this.#wanted.values()) reject(this.#ended);
    this.#wanted.clear();
    this.#open.clear();
    this.#ring.giveUp();
  }
}

/**
 * Creates the hasher. A stream whose digest is never requested (one without an answer) is dropped when its `StreamHash` is garbage
 * collected.
 */
export function makeStreamHasher(): StreamHasher {
  let thread: HashingThread | undefined;
  const start = (): HashingThread => {
    const started: HashingThread = new HashingThread(() => {
      if (thread === started) thread = undefined;
    });
    return started;
  };
  const left = new FinalizationRegistry<{ on: HashingThread; stream: number }>(({ on, stream }) => on.forget(stream));
  return {
    open: () => {
      thread ??= start();
      const on = thread;
      const stream = on.open();
      const hash: StreamHash = {
        add: (bytes) => {
          for (let at = 0; at < bytes.length; at += SLOT_BYTES)
            on.put({ stream, bytes: bytes.subarray(at, at + SLOT_BYTES) });
        },
        room: () => on.room(),
        digest: () => on.digest(stream),
      };
      left.register(hash, { on, stream });
      return hash;
    },
    close: () => {
      thread?.close();
      thread = undefined;
    },
  };
}
