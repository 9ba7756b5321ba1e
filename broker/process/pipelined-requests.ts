/**
 * Limits the requests that a client sends on one connection without waiting for answers (RFC 9112 section 9.3.2). Node handles all requests of a piece of
 * 64 KiB in one turn of the event loop, a thousand and more, and no other client is served meanwhile. Hardly any client pipelines.
 */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of a connection that wait for the answer to an earlier one. Not zero: a client may have read an answer before Node knows that it is written. */
export const MAX_PIPELINED = 4;

/**
 * Returns whether a request is one too many; its connection is destroyed then, and answers to the others are lost.
 *
 * @param refused called when a connection is destroyed
 */
export function pipelineLimit(refused: () => void): (response: ServerResponse) => boolean {
  /** The requests that wait, by connection. An entry is created by the first of them, and never for other clients. */
  const waiting = new WeakMap<Socket, { count: number }>();
  /** The answer of a request that waits has no socket of its own yet. */
  const isPipelined = ({ socket }: ServerResponse): boolean => socket === null;
  return (response) => {
    const { socket } = response.req;
    if (socket.destroyed) return true;
    if (!isPipelined(response)) return false;
    const mine = waiting.get(socket) ?? { count: 0 };
    waiting.set(socket, mine);
    if (mine.count >= MAX_PIPELINED) {
      refused();
      socket.destroy();
      return true;
    }
    mine.count++;
    response.once('close', () => mine.count--);
    return false;
  };
}
