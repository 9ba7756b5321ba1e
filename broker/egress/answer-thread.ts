/** The thread that reads large answers: on the thread that answers, one of 10 MiB would keep everybody waiting for a second. */
import { parentPort } from 'node:worker_threads';
import { type ReadAnswer, type Received, readAnswer } from './answer.ts';
import { CredentialPatterns } from './credential-patterns.ts';

/** An answer to be read. `secrets`: what is looked for, as `CredentialPatterns.reveal` gives it. */
export type ToAnswerThread = {
  id: number;
  answer: Omit<Received, 'body'> & { body: Uint8Array };
  secrets: readonly string[];
};
/** `data` goes as bytes, which are handed over and not copied. */
export type FromAnswerThread = { id: number; read: ReadAnswer; data?: Uint8Array };

/** Preparing the search for a credential takes longer than most searches. */
const KEPT = 32;
const kept = new Map<string, CredentialPatterns>();

function patternsFor(secrets: readonly string[]): CredentialPatterns {
  const key = JSON.stringify(secrets);
  const found = kept.get(key) ?? new CredentialPatterns(secrets);
  kept.delete(key);
  kept.set(key, found);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
  return found;
}

if (parentPort === null) throw new Error('this file is the code of a thread');
const port = parentPort;
port.on('message', ({ id, answer, secrets }: ToAnswerThread) => {
  const { buffer, byteOffset, byteLength } = answer.body;
  const read = readAnswer({ ...answer, body: Buffer.from(buffer, byteOffset, byteLength) }, patternsFor(secrets));
  if (read.kind === 'blocked') {
    port.postMessage({ id, read } satisfies FromAnswerThread);
    return;
  }
  const data = new TextEncoder().encode(read.data);
  port.postMessage({ id, read: { ...read, data: '' }, data } satisfies FromAnswerThread, [data.buffer]);
});
