/** Hashes long streams on a thread of their own, one for all of a process, which starts with the first of them. */
import { Worker } from 'node:worker_threads';
import { DIGEST, FORGET, type HashEntry, HashRing, hashMemory, SLOT_BYTES } from './hash-ring.ts';
import type { FromHashThread } from './hash-thread.ts';

const THREAD = new URL(`./hash-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** Heap limits of the thread, in MB: it stores the states of hashes, and its garbage is not worth the young generation that V8 would give it. */
const LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 32 };

export type StreamHash = {
  /** Takes a copy. */
  add(bytes: Uint8Array): void;
  /** Something of what was added waits for room, in memory: nothing more is to be added before this resolves. undefined: nothing waits. */
  room(): Promise<void> | undefined;
  /** The SHA-256 of all that was added, in hexadecimal; to be asked once, at the end. Rejects when the thread ended, as when there is no memory. */
  digest(): Promise<string>;
};

export type StreamHasher = {
  open(): StreamHash;
  /** Ends the thread, once the streams that are open are done with. */
  close(): void;
};

type Wanted = { resolve: (sha256: string) => void; reject: (error: Error) => void };

class HashingThread {
  readonly #worker: Worker;
  readonly #ring: HashRing;
  readonly #open = new Set<number>();
  readonly #wanted = new Map<number, Wanted>();
  /** What found no room. */
  #behind: HashEntry[] = [];
  #catchingUp: Promise<void> | undefined;
  #last = 0;
  #isClosing = false;
  #ended: Error | undefined;

  /** @param onEnd called when it ended by itself. */
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
    // Last, since a listener holds the process again.
    this.#worker.unref();
  }

  open(): number {
    this.#last = (this.#last + 1) | 0;
    this.#open.add(this.#last);
    return this.#last;
  }

  put(entry: HashEntry): void {
    if (this.#ended || (this.#behind.length === 0 && this.#ring.offer(entry))) return;
    // Copied, by no method of Buffer, whose `slice` shares its memory.
    this.#behind.push('bytes' in entry ? { ...entry, bytes: new Uint8Array(entry.bytes) } : entry);
    this.#catchingUp ??= this.#catchUp();
  }

  room(): Promise<void> | undefined {
    return this.#catchingUp;
  }

  digest(stream: number): Promise<string> {
    if (this.#ended) return Promise.reject(this.#ended);
    // A process must not end before it, as when its sockets are closed already.
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

/** Makes it. A stream whose digest nobody asks for, as one that never had an answer, is forgotten when its `StreamHash` is. */
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
