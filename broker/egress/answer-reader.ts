/** Reads answers: small ones on the calling thread, large ones on a worker thread, one at a time and in turns between organisations and their families. */
import { Worker } from 'node:worker_threads';
import type { Holder } from '../runtime/shared-limit.ts';
import { type AnswerMask, type ReadAnswer, type Received, readAnswer } from './answer.ts';
import type { FromAnswerThread, ToAnswerThread } from './answer-thread.ts';
import type { CredentialPatterns } from './credential-patterns.ts';
import { OrganisationsQueue } from './fair-queue.ts';

const THREAD = new URL(`./answer-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/** From this size on, reading takes milliseconds, far more than passing the answer to the thread. */
const LARGE = 256 * 1024;

export type AnswerReader = {
  /**
   * Runs `readAnswer`; ownership of the body passes to it. For a large answer the text is returned as UTF-8 bytes, which are sent on
   * without encoding again. Rejects when the thread ends, for example when it runs out of memory.
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
  answer: Received;
  patterns: CredentialPatterns;
  mask: AnswerMask | undefined;
  resolve: (read: ReadAnswer<string | Buffer>) => void;
  reject: (error: Error) => void;
};

/** `large`: size in bytes from which answers go to the thread, which is started by the first of them. */
export function makeAnswerReader(large = LARGE): AnswerReader {
  const waiting = new OrganisationsQueue<Job>();
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
    // A body that shares its buffer with others is copied; one of this size usually has its own.
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
    read: async (answer, patterns, holder, mask) => {
      if (answer.body.length < large) return readAnswer(answer, patterns, mask);
      return await new Promise((resolve, reject) => {
        waiting.push(holder, { answer, patterns, mask, resolve, reject });
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
