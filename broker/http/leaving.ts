/** Clients that leave before they have their answer, and those that go on sending. */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Calls `then` when the reader has left or the answer is over; at once, when that was before. */
export function leaving(response: ServerResponse, then: () => void): void {
  if (response.destroyed || response.closed) then();
  else response.once('close', then);
}

/** Whoever still sends what nobody reads is cut off after so long, unless a door says otherwise. */
const LINGER_MS = 5_000;

/**
 * Before the answer to a request whose body is not here whole. With `Connection: close`, and in HTTP/1.0, Node closes the connection as soon as the answer is
 * written, and what the client goes on to send is met by a reset in place of the answer. So only the way to the client is closed, and the other one left to
 * `linger`.
 */
export function answerWhileSent(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete || response.shouldKeepAlive) return;
  const { socket } = request;
  response.shouldKeepAlive = true;
  response.once('finish', () => socket.end());
}

/** Lets a client that still sends read its answer. Nobody reads the body any more. */
export function linger(request: IncomingMessage, ms = LINGER_MS): void {
  if (request.complete || request.destroyed) return;
  // An iterator over the body that was begun and left has its listener here still, and the body would not flow.
  request.removeAllListeners('readable');
  setImmediate(() => request.resume());
  setTimeout(() => {
    if (!request.complete) request.destroy();
  }, ms).unref();
}

/**
 * Breaks an answer off by a reset of its connection (RFC 9293 section 3.10.5), so that nobody takes it for whole: not even a client that takes
 * the end of the connection for the end of the answer (HTTP/1.0). What is not on the wire yet is not sent.
 */
export function breakOff(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
  response.destroy();
}

/**
 * Cuts an answer short whose rest does not come: what was written still arrives, and that it is not whole shows by its length or its chunks.
 * In HTTP/1.0, which nginx speaks unless it is told otherwise, neither need be there, so it is broken off.
 */
export function cutShort(response: ServerResponse): void {
  if (response.req.httpVersion === '1.0') breakOff(response);
  else response.destroy();
}

/** Aborts when the client leaves before its answer was written whole: to abort makes an error with its stack, for them alone. */
export function leftEarly(response: ServerResponse): AbortSignal {
  const left = new AbortController();
  response.once('close', () => {
    if (!response.writableFinished) left.abort();
  });
  return left.signal;
}
