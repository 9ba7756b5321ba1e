/** Small real servers on loopback, well-behaved and not, and an outbound client that may reach them. */
import type { LookupAddress } from 'node:dns';
import http from 'node:http';
import net, { type AddressInfo, type Server, type Socket } from 'node:net';
import tls from 'node:tls';
import { makeOutbound, type OutboundOptions } from '../../broker/egress/dispatcher.ts';
import type { OutboundRequest } from '../../broker/egress/outbound-request.ts';
import type { Certificate } from './certificate.ts';

export type Upstream = {
  port: number;
  /** `127.0.0.1:port`. */
  origin: string;
  url: (path?: string) => URL;
  /** Number of connections so far. */
  connections: () => number;
  /** Everything received, on all connections. */
  received: () => string;
  [Symbol.asyncDispose]: () => Promise<void>;
};

async function listen(server: Server, received: Buffer[], scheme = 'http'): Promise<Upstream> {
  let connections = 0;
  const sockets = new Set<Socket>();
  server.on(scheme === 'https' ? 'secureConnection' : 'connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    origin: `127.0.0.1:${port}`,
    url: (path = '/') => new URL(`${scheme}://127.0.0.1:${port}${path}`),
    connections: () => connections,
    received: () => Buffer.concat(received).toString('latin1'),
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

/** A well-behaved HTTP server. */
export function httpUpstream(handler: http.RequestListener): Promise<Upstream> {
  return listen(http.createServer(handler), []);
}

/** A TCP server with arbitrary behaviour; `onRequest` is called with each received chunk. */
export function rawUpstream(
  onRequest: (socket: Socket, text: string) => void,
  onConnection?: (socket: Socket) => void,
) {
  const received: Buffer[] = [];
  const server = net.createServer((socket) => {
    onConnection?.(socket);
    socket.on('data', (chunk) => {
      received.push(chunk);
      onRequest(socket, chunk.toString('latin1'));
    });
  });
  return listen(server, received);
}

/** Answers every request with the same bytes; by default leaves the connection open. */
export function fixedUpstream(answer: string | Buffer, end = false): Promise<Upstream> {
  return rawUpstream((socket) => {
    socket.write(answer);
    if (end) socket.end();
  });
}

/** Answers every request over TLS and closes; `onConnection` gets each connection whose handshake succeeded. */
export function tlsUpstream(
  certificate: Certificate,
  onConnection?: (socket: tls.TLSSocket) => void,
): Promise<Upstream> {
  const received: Buffer[] = [];
  const server = tls.createServer(certificate, (socket) => {
    onConnection?.(socket);
    socket.on('data', (chunk) => {
      received.push(chunk);
      socket.end('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}');
    });
  });
  server.on('tlsClientError', () => {});
  return listen(server, received, 'https');
}

/** An outbound client that may reach the given upstreams, closed by `await using`. */
export function outboundTo(upstreams: Upstream | Upstream[], options: Partial<OutboundOptions> = {}) {
  const allowPrivate = [...[upstreams].flat().map((upstream) => upstream.origin), ...(options.allowPrivate ?? [])];
  const outbound = makeOutbound({ idleTimeoutMs: 5_000, totalTimeoutMs: 10_000, ...options, allowPrivate });
  return { ...outbound, [Symbol.asyncDispose]: () => outbound.close() };
}

export function get(url: URL, more: Partial<OutboundRequest> = {}): OutboundRequest {
  return { url, method: 'GET', headers: {}, ...more };
}

/** A resolver that answers from a list, one entry per query; the last one repeats. */
export function lookupOf(...answers: (string[] | Error)[]) {
  let asked = 0;
  const lookup = (_: string, __: { all: true }, done: (error: Error | null, found: LookupAddress[]) => void) => {
    const answer = answers[Math.min(asked++, answers.length - 1)] ?? [];
    if (answer instanceof Error) process.nextTick(done, answer, []);
    else
      process.nextTick(
        done,
        null,
        answer.map((address) => ({ address, family: net.isIP(address) })),
      );
  };
  return { lookup, asked: () => asked };
}
