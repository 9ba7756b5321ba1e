/** Worker thread that hashes long streams: on the main thread, a gigabyte would block all requests for a second. */
import { createHash, type Hash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { DIGEST, HashRing } from './hash-ring.ts';

/** The SHA-256 of a stream, in lower-case hexadecimal. */
export type FromHashThread = { stream: number; sha256: string };

if (parentPort === null) throw new Error('this file is the code of a thread');
const port = parentPort;
// No messages are sent, but without a listener the thread would end.
port.on('message', () => {});
const ring = new HashRing(workerData as SharedArrayBuffer);
const streams = new Map<number, Hash>();

for (;;) {
  const entry = ring.take();
  if (entry === undefined) {
    await ring.entry();
    continue;
  }
  const { stream } = entry;
  let hash = streams.get(stream);
  if ('bytes' in entry) {
    if (hash === undefined) {
      hash = createHash('sha256');
      streams.set(stream, hash);
    }
    hash.update(entry.bytes);
  } else {
    streams.delete(stream);
    if (entry.want === DIGEST && hash !== undefined)
      port.postMessage({ stream, sha256: hash.digest('hex') } satisfies FromHashThread);
  }
  ring.free();
}
