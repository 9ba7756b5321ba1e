/** Reads answers: small ones on the calling thread, large ones on two worker threads: one of an organisation at a time, and in turns between organisations and their families. */
import { Worker } from 'node:worker_threads';
import type { Holder } from '../../runtime/shared-limit.ts';
import type { CredentialPatterns } from '../credential-search/patterns.ts';
import { OrganisationsQueue } from '../fair-queue.ts';
import { type AnswerMask, type ReadAnswer, type Received, readAnswer } from './answer.ts';
import type { FromAnswerThread, ToAnswerThread } from './answer-thread.ts';

const THREAD = new URL(`./answer-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** From this size on, reading takes milliseconds, far more than passing the answer to the thread. */
const LARGE = 256 * 1024;

export type AnswerReader = {
  /**
   * Runs `readAnswer`; ownership of the body passes to it. For a large answer the text is returned as UTF-8 bytes, which are sent on
   * without encoding again. Rejects when its thread ends, for example when it runs out of memory.
   */
  read(
    answer: Received,
    patterns: CredentialPatterns,
    holder: Holder,
    mask?: AnswerMask,
  ): Promise<ReadAnswer<string | Buffer>>;
  close(): Promise<void>;
};

type Job = {
  organisation: string;
  answer: Received;
  patterns: CredentialPatterns;
  mask: AnswerMask | undefined;
  resolve: (read: ReadAnswer<string | Buffer>) => void;
  reject: (error: Error) => void;
};

/** An answer takes up to seconds to read, so that there is a thread for other organisations. */
const THREADS = 2;

/** `large`: size in bytes from which answers go to the threads, which are started when they are needed. */
export function makeAnswerReader(large = LARGE): AnswerReader {
  const waiting = new OrganisationsQueue<Job>();
  const readNext = (): void => {
    for (const thread of threads) {
      const job = thread.isFree
        ? waiting.next((organisation) => threads.some((one) => one.organisation === organisation))
        : undefined;
      if (job) thread.read(job);
    }
  };
  const threads = Array.from({ length: THREADS }, () => new AnswerThread(readNext));

  return {
    read: async (answer, patterns, holder, mask) => {
      if (answer.body.length < large) return readAnswer(answer, patterns, mask);
      const { organisation } = holder;
      return await new Promise((resolve, reject) => {
        waiting.push(holder, { organisation, answer, patterns, mask, resolve, reject });
        readNext();
      });
    },
    close: async () => {
      const closed = new Error('the broker is shutting down');
      for (let job = waiting.next(); job !== undefined; job = waiting.next()) job.reject(closed);
      await Promise.all(threads.map((thread) => thread.close(closed)));
    },
  };
}

/** A worker thread that reads one answer at a time. */
class AnswerThread {
  readonly #onFree: () => void;
  #worker: Worker | undefined;
  #job: Job | undefined;

  constructor(onFree: () => void) {
    this.#onFree = onFree;
  }

  get isFree(): boolean {
    return this.#job === undefined;
  }

  /** Whose answer is being read. */
  get organisation(): string | undefined {
    return this.#job?.organisation;
  }

  read(job: Job): void {
    this.#job = job;
    this.#worker ??= this.#start();
    const { status, headers, body } = job.answer;
    // A body that shares its buffer with others is copied; one of this size usually has its own.
    const owned = body.byteLength === body.buffer.byteLength ? body : Buffer.from(new Uint8Array(body).buffer);
    const message: ToAnswerThread = {
      answer: { status, headers, body: owned },
      secrets: job.patterns.reveal(),
      mask: job.mask,
    };
    this.#worker.postMessage(message, [owned.buffer as ArrayBuffer]);
  }

  #start(): Worker {
    const worker = new Worker(THREAD);
    worker.unref();
    worker.on('message', ({ read, data }: FromAnswerThread) => {
      this.#end(({ resolve }) => {
        if (read.kind === 'blocked' || data === undefined) resolve(read);
        else resolve({ ...read, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength) });
      });
    });
    const ended = (error: unknown) => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      this.#end(({ reject }) => reject(new Error('the thread that reads answers ended', { cause: error })));
    };
    worker.on('error', ended);
    worker.on('exit', ended);
    return worker;
  }

  #end(finish: (job: Job) => void): void {
    const job = this.#job;
    this.#job = undefined;
    if (job) finish(job);
    this.#onFree();
  }

  async close(why: Error): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    this.#job?.reject(why);
    this.#job = undefined;
    await worker?.terminate();
  }
}
