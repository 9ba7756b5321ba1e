/** Worker thread that reads large answers: on the main thread, an answer of 10 MiB would block all requests for a second. */
import { parentPort } from 'node:worker_threads';
import { recentlyUsed } from '../../runtime/recently-used.ts';
import { CredentialPatterns } from '../credential-search/patterns.ts';
import { type AnswerMask, type ReadAnswer, type Received, readAnswer } from './answer.ts';

/** An answer to read. `secrets`: the texts to search for, from `CredentialPatterns.reveal`. */
export type ToAnswerThread = {
  answer: Omit<Received, 'body'> & { body: Uint8Array };
  secrets: readonly string[];
  mask: AnswerMask | undefined;
};
/** `data` is sent as bytes, because a buffer is transferred and not copied. */
export type FromAnswerThread = { read: ReadAnswer; data?: Uint8Array };

/** Prepared searches; preparing one takes longer than most searches. */
const CACHE_SIZE = 64;
const kept = recentlyUsed<CredentialPatterns>(CACHE_SIZE);

function patternsFor(secrets: readonly string[]): CredentialPatterns {
  const key = JSON.stringify(secrets);
  const known = kept.get(key);
  if (known) return known;
  const made = new CredentialPatterns(secrets);
  kept.set(key, made);
  return made;
}

if (parentPort === null) throw new Error('this file is the code of a thread');
const port = parentPort;
port.on('message', ({ answer, secrets, mask }: ToAnswerThread) => {
  const { buffer, byteOffset, byteLength } = answer.body;
  const received = { ...answer, body: Buffer.from(buffer, byteOffset, byteLength) };
  const read = readAnswer(received, patternsFor(secrets), mask);
  if (read.kind === 'blocked') {
    port.postMessage({ read } satisfies FromAnswerThread);
    return;
  }
  const data = new TextEncoder().encode(read.data);
  port.postMessage({ read: { ...read, data: '' }, data } satisfies FromAnswerThread, [data.buffer]);
});
