/** Reads a request's body in pieces. */
import type { IncomingMessage } from 'node:http';
import { Refusal } from './errors.ts';

const IDLE_MS = 60_000;

/**
 * Yields the pieces of a body. When none arrives for `idleMs` while one is awaited, the request is destroyed, and the iterator throws; it also throws
 * when the sender disconnects. Stopping early leaves the connection open, so that it can still be answered.
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
    // Without these the rest of the body would not flow: its sender would not read the answer, and the connection would count as idle.
    await iterator.return?.();
    request.resume();
  }
}

const WHOLE_MS = 5_000;

/** Reads a short body, at most `most` bytes. Throws Refusal. */
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
