/** A request's body in pieces, for whoever passes it on. */
import type { IncomingMessage } from 'node:http';
import { Refusal } from './errors.ts';

const IDLE_MS = 60_000;

/**
 * The pieces of a body. When none comes for `idleMs` although one is awaited, the request is destroyed, and the iterator throws; so it
 * does when the sender leaves. To stop reading leaves the connection as it is, so that there can still be an answer.
 */
export async function* inTime(request: IncomingMessage, idleMs = IDLE_MS): AsyncGenerator<Buffer> {
  const iterator = request.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const timer = setTimeout(() => request.destroy(new Error('the body of the request does not go on')), idleMs);
      const { done, value } = await iterator.next().finally(() => clearTimeout(timer));
      if (done) return;
      yield value;
    }
  } finally {
    // Or what is not read any more would not flow: its sender would not get to the answer, and the connection would be taken for idle.
    await iterator.return?.();
    request.resume();
  }
}

const WHOLE_MS = 5_000;

/** A short body byte for byte, of `most` bytes at most. Throws Refusal. */
export async function bytesOf(request: IncomingMessage, most: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of inTime(request, WHOLE_MS)) {
    size += piece.length;
    if (size > most)
      throw new Refusal('payload_too_large', `The body is too large: ${Math.floor(most / 1024)} KiB at most.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
