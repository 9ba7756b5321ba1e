/** Reads answers: small ones at once, large ones on a thread of their own, one after another and in turns of the families. */
import { Worker } from 'node:worker_threads';
import { type AnswerMask, type ReadAnswer, type Received, readAnswer } from './answer.ts';
import type { FromAnswerThread, ToAnswerThread } from './answer-thread.ts';
import type { CredentialPatterns } from './credential-patterns.ts';
import { FairQueue } from './fair-queue.ts';

const THREAD = new URL(`./answer-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** From this size on reading takes some milliseconds, far more than handing it over. */
const LARGE = 256 * 1024;

export type AnswerReader = {
  /**
   * `readAnswer` of the answer, whose body is given up to it. Of a large one the text is given as UTF-8, which is what goes out
   * and not to be made again. Rejects when the thread ends, as when there is no memory.
   */
  read(
    answer: Received,
    patterns: CredentialPatterns,
    family: string,
    mask?: AnswerMask,
  ): Promise<ReadAnswer<string | Buffer>>;
  close(): Promise<void>;
};

type Job = {
  answer: Received;
  patterns: CredentialPatterns;
  mask: AnswerMask | undefined;
  resolve: (read: ReadAnswer<string | Buffer>) => void;
  reject: (error: Error) => void;
};

/** `large`: bytes from which on an answer goes to the thread, which starts with the first of them. */
export function makeAnswerReader(large = LARGE): AnswerReader {
  const waiting = new FairQueue<Job>();
  let worker: Worker | undefined;
  let current: Job | undefined;
  let id = 0;

  const start = (): Worker => {
    const thread = new Worker(THREAD);
    thread.unref();
    thread.on('message', ({ id: done, read, data }: FromAnswerThread) => {
      if (done !== id || current === undefined) return;
      const { resolve } = current;
      next();
      if (read.kind === 'blocked' || data === undefined) resolve(read);
      else resolve({ ...read, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength) });
    });
    const ended = (error: unknown) => {
      if (worker !== thread) return;
      worker = undefined;
      current?.reject(new Error('the thread that reads answers ended', { cause: error }));
      next();
    };
    thread.on('error', ended);
    thread.on('exit', ended);
    return thread;
  };

  const next = (): void => {
    current = waiting.next();
    if (current === undefined) return;
    worker ??= start();
    const { answer, patterns, mask } = current;
    const { status, headers, body } = answer;
    // A body that shares its memory with others is copied; one of this size has its own.
    const owned = body.byteLength === body.buffer.byteLength ? body : Buffer.from(new Uint8Array(body).buffer);
    const message: ToAnswerThread = {
      id: ++id,
      answer: { status, headers, body: owned },
      secrets: patterns.reveal(),
      mask,
    };
    worker.postMessage(message, [owned.buffer as ArrayBuffer]);
  };

  return {
    read: async (answer, patterns, family, mask) => {
      if (answer.body.length < large) return readAnswer(answer, patterns, mask);
      return await new Promise((resolve, reject) => {
        waiting.push(family, { answer, patterns, mask, resolve, reject });
        if (current === undefined) next();
      });
    },
    close: async () => {
      const thread = worker;
      worker = undefined;
      const closed = new Error('the broker is shutting down');
      current?.reject(closed);
      for (let job = waiting.next(); job !== undefined; job = waiting.next()) job.reject(closed);
      current = undefined;
      await thread?.terminate();
    },
  };
}
