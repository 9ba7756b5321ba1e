/** Answers input that Node's parser rejects before there is a request, in the error envelope like every other refusal. */
import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { correlationId } from '../crypto/ids.ts';

const CODES = {
  400: 'invalid_request',
  405: 'method_not_allowed',
  408: 'invalid_request',
  413: 'payload_too_large',
  417: 'invalid_request',
  431: 'invalid_request',
  505: 'invalid_request',
} as const;

/** The status for an error of Node's HTTP parser, by its code (Node.js documentation, Event: 'clientError'). */
const STATUS_BY_ERROR: Readonly<Record<string, keyof typeof CODES>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_PAUSED_H2_UPGRADE: 505,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

const DETAILS = {
  400: 'This is not a well-formed HTTP/1.1 request.',
  405: 'The method CONNECT is not supported: the broker is not a proxy.',
  408: 'The request did not arrive in time.',
  413: 'The chunk extensions of the body are too large.',
  417: 'The only supported value of the Expect header is 100-continue.',
  431: 'The request has more than 200 headers, or they are larger than 16 KiB.',
  505: 'HTTP/2 is not supported here: use HTTP/1.1 (curl: --http1.1), or put a reverse proxy in front that speaks both.',
} as const;

/**
 * Makes a server answer malformed requests, CONNECT and unknown expectations with a JSON body and a correlation id. `isLong`: whether a
 * request may take longer to arrive than the server's `requestTimeout`.
 */
export function answerUnparsedRequests(server: Server, isLong: (request: IncomingMessage) => boolean): void {
  const long = new WeakMap<Duplex, ServerResponse>();
  server.on('request', (request, response) => {
    if (isLong(request)) long.set(request.socket, response);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Node leaves it to this listener to end a request that takes too long, and checks each request only once.
    const response = long.get(socket);
    const isUnderWay = response && !response.writableEnded && !response.req.complete;
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && isUnderWay) return;
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    refuseUnparsed(socket, STATUS_BY_ERROR[error.code ?? ''] ?? 400);
  });
  server.on('connect', (_request, socket) => refuseUnparsed(socket, 405));
  server.on('checkExpectation', (request, response) => {
    // The client may or may not send the announced body next, so the connection cannot be reused.
    response.shouldKeepAlive = false;
    request.resume();
    const { head, body } = refusal(417);
    response.writeHead(417, head).end(body);
  });
}

/** Refuses a request of which only the connection is known, and closes that. */
export function refuseUnparsed(socket: Duplex, status: keyof typeof CODES): void {
  const { head, body } = refusal(status);
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
}

function refusal(status: keyof typeof CODES) {
  const id = correlationId();
  const body = JSON.stringify({ error: CODES[status], detail: DETAILS[status], correlation_id: id });
  const head = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(body)),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Correlation-Id': id,
    ...(status === 405 && { Allow: 'GET, HEAD, POST, PUT, PATCH, DELETE' }),
    Connection: 'close',
  };
  return { head, body };
}
