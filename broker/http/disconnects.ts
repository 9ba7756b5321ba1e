/** Handles clients that disconnect before they have their answer, and clients that keep sending. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Calls `then` when the reader disconnects or the response is finished; immediately when that has already happened. */
export function onDisconnect(response: ServerResponse, then: () => void): void {
  if (response.destroyed || response.closed) then();
  else response.once('close', then);
}

/** Clients that keep sending a body that is not read are disconnected after this time, unless the entry point sets another. */
const LINGER_MS = 5_000;

/**
 * To be called before answering a request whose body has not fully arrived. With `Connection: close`, and in HTTP/1.0, Node closes the connection as
 * soon as the answer is written; what the client then still sends causes a reset, and the answer is lost. So only the sending direction is closed,
 * and the receiving one is left to `linger`.
 */
export function answerWhileSent(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || response.shouldKeepAlive) return;
  const { socket } = request;
  response.shouldKeepAlive = true;
  response.once('finish', () => socket.end());
}

/** Gives a client that is still sending time to read its answer. The body is discarded. */
export function linger(request: IncomingMessage, ms = LINGER_MS): void {
  if (request.complete || request.destroyed) return;
  // An abandoned iterator over the body leaves its listener on the request, and the body would not flow.
  request.removeAllListeners('readable');
  setImmediate(() => request.resume());
  setTimeout(() => {
    if (!request.complete) request.destroy();
  }, ms).unref();
}

/**
 * Breaks off an answer by resetting its connection (RFC 9293 section 3.10.5), so that it is not taken for complete, not even by a client that takes
 * the end of the connection for the end of the answer (HTTP/1.0). Unsent bytes are dropped.
 */
export function resetConnection(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
  response.destroy();
}

/**
 * Cuts an answer short when the rest does not come: what was written still arrives, and its length or chunking shows that it is incomplete. In
 * HTTP/1.0, the default of nginx, neither may be present, so the connection is reset.
 */
export function endIncomplete(response: ServerResponse): void {
  if (response.req.httpVersion === '1.0') resetConnection(response);
  else response.destroy();
}

/**
 * Returns a signal that aborts when the client disconnects before its answer was written completely. It aborts only then, because each abort creates
 * an error with its stack.
 */
export function disconnectSignal(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
}
