/**
 * The proxy of a run, for tools without a setting for a base URL: CONNECT (RFC 9110, 9.3.6), and plain HTTP by targets in absolute-form
 * (RFC 9112, 3.2.2), which Ruby's Net::HTTP requires of a proxy before it uses CONNECT at all. TLS to a granted platform ends here, with a
 * certificate of this run's authority; requests for other hosts are passed through or refused.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request as requestHttp,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { Authority } from './authority.ts';
import type { Entry } from './entry.ts';
import { passedOn, relay } from './forward.ts';
import { originOf, type PlatformAddress } from './platform-address.ts';
import { CHALLENGE, type Hosts, judging, type ProxyRefusal, type Target, unreachable } from './proxy-target.ts';
import { refuseStranger } from './refusal.ts';
import { platformRoute } from './routes.ts';

export type ConnectProxy = Hosts & { authority: Authority };

export type Tunnels = {
  /** Listener for the event `connect` of a server. */
  connect(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Answers a request in absolute-form. Returns false for other requests, without answering. */
  ask(request: IncomingMessage, response: ServerResponse): boolean;
  /** Closes all tunnels. */
  close(): void;
};

/** `answer`: handles requests in a tunnel that was opened. */
export function tunnelling(
  { authority, ...hosts }: ConnectProxy,
  { placeholder, answer }: { placeholder: string; answer: (entry: Entry) => RequestListener },
): Tunnels {
  const sockets = new Set<Duplex>();
  const opened = openings(hosts.addresses, authority, answer);
  const judge = judging(hosts, placeholder);
  const kept = <T extends Duplex>(socket: T): T => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  return {
    connect: (request, socket, head) => {
      kept(socket).on('error', () => socket.destroy());
      const judged = judge(request, request.url ?? '', 'CONNECT');
      if ('error' in judged) return refuse(socket, judged);
      const { target, origin } = judged;
      if (origin === undefined) return passThrough(target, { socket, head, kept });
      socket.write(ESTABLISHED);
      if (head.length > 0) socket.unshift(head);
      opened(target.host, origin, kept(socket));
    },
    ask: (request, response) => {
      const [, scheme, authority = '', path = ''] =
        /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/is.exec(request.url ?? '') ?? [];
      if (scheme === undefined) return false;
      // An empty authority is refused as malformed: only the scheme http is supported here.
      const judged = judge(request, scheme.toLowerCase() === 'http' ? authority : '', 'http');
      if ('error' in judged) answerRefusal(response, judged);
      else passOn({ ...judged.target, authority, path: path.startsWith('/') ? path : `/${path}` }, request, response);
      return true;
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';

/** Terminates TLS, and hands the connection to an HTTP server for that origin. */
function openings(
  addresses: readonly PlatformAddress[],
  authority: Authority,
  answer: (entry: Entry) => RequestListener,
): (host: string, origin: string, socket: Duplex) => void {
  const made = new Map<string, { server: Server; secureContext: SecureContext }>();
  return (host, origin, socket) => {
    const here = made.get(origin) ?? {
      server: createServer({ requestTimeout: 0, keepAliveTimeout: 120_000 }, answer(entryOf(origin, addresses))),
      secureContext: createSecureContext({ ...authority.certificateOf(host), minVersion: 'TLSv1.2' }),
    };
    made.set(origin, here);
    const { server, secureContext } = here;
    // HTTP/2 is not supported: a client that offers nothing else is refused in the handshake (RFC 7301, section 3.2).
    const plain = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] });
    plain.on('error', () => socket.destroy());
    server.emit('connection', plain);
  };
}

function entryOf(origin: string, addresses: readonly PlatformAddress[]): Entry {
  const here = addresses.filter((one) => originOf(one) === origin);
  const { host } = new URL(origin);
  return {
    hosts: host.endsWith(']') || !host.includes(':') ? [host, `${host}:443`] : [host],
    isShown: true,
    routeOf: (target) => platformRoute(target, origin, here),
    isApi: () => false,
    connectionOf: () => here[0]?.connection,
    unknown: `This path is not part of a granted connection at this host. Available: ${here.map(({ connection, path }) => `${origin}${path} (${connection})`).join(', ')}.`,
  };
}

/** Copies bytes in both directions. */
function passThrough(
  { host, port }: Target,
  { socket, head, kept }: { socket: Duplex; head: Buffer; kept: <T extends Duplex>(socket: T) => T },
): void {
  const upstream: Socket = kept(connectTcp({ host, port, allowHalfOpen: true, noDelay: true }));
  let isEstablished = false;
  upstream.once('connect', () => {
    isEstablished = true;
    socket.write(ESTABLISHED);
    upstream.write(head);
    socket.pipe(upstream);
    upstream.pipe(socket);
  });
  upstream.on('error', (error: NodeJS.ErrnoException) =>
    isEstablished ? socket.destroy() : refuse(socket, unreachable({ host, port }, error)),
  );
  upstream.once('close', () => isEstablished && !socket.writableEnded && socket.destroy());
  socket.once('close', () => upstream.destroy());
}

type PlainTarget = Target & { authority: string; path: string };

/** Forwards a plain HTTP request to a host that belongs to no granted platform. */
function passOn(
  { host, port, authority, path }: PlainTarget,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { method } = request;
  const sent = ['Host', authority, ...passedOn(request.rawHeaders)];
  relay(request, response, {
    open: (framing) => requestHttp({ host, port, method, path, headers: [...sent, ...framing], agent: false }),
    failed: (error) => answerRefusal(response, unreachable({ host, port }, error)),
  });
}

function answerRefusal(response: ServerResponse, refusal: ProxyRefusal): void {
  if (refusal.status === 407) response.setHeader(...CHALLENGE);
  refuseStranger(response, refusal);
}

function refuse(socket: Duplex, { status, reason, error, detail }: ProxyRefusal): void {
  const body = `${JSON.stringify({ error, detail })}\n`;
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    ...(status === 407 ? [CHALLENGE.join(': ')] : []),
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}
