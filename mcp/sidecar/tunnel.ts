/**
 * The proxy of a run, for tools that can be given no base URL: CONNECT (RFC 9110, 9.3.6). TLS to a granted platform ends here, with
 * a certificate of this run's authority; what else is asked for is passed on as it is, or refused. Only who shows the placeholder as the
 * proxy's password (11.7) is served.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';
import type { Authority } from './authority.ts';
import { type Entry, isOfBrowser } from './entry.ts';
import { isShown, passwordIn } from './placeholder.ts';
import { bareHost, originOf, type PlatformAddress } from './platform-address.ts';
import { platformRoute } from './routes.ts';

export type ConnectProxy = {
  /** Of granted platforms; those without TLS are none of its business. */
  addresses: readonly PlatformAddress[];
  authority: Authority;
  /** Hosts of no granted platform are refused. */
  isStrict: boolean;
  /** Told of each such host once. */
  tell?: ((line: string) => void) | undefined;
};

export type Tunnels = {
  /** For the event `connect` of a server. */
  connect(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Cuts all. */
  close(): void;
};

type Refusal = { status: number; reason: string; error: string; detail: string };
type Target = { host: string; port: number };

/** `answer`: what answers requests in a tunnel that was opened. `serverOptions`: of HTTP. */
export function tunnelling(
  { addresses, authority, isStrict, tell = () => {} }: ConnectProxy,
  { placeholder, answer }: { placeholder: string; answer: (entry: Entry) => RequestListener },
): Tunnels {
  const sockets = new Set<Duplex>();
  const opened = openings(addresses, authority, answer);
  const told = new Set<string>();
  const tellOnce = (host: string) => {
    if (told.has(host)) return;
    told.add(host);
    tell(`${host} is the host of no granted platform: ${isStrict ? 'refused' : 'passed through, and not governed'}.`);
  };
  const kept = <T extends Duplex>(socket: T): T => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    return socket;
  };
  return {
    connect: (request, socket, head) => {
      kept(socket).on('error', () => socket.destroy());
      const found = targetOf(request, placeholder);
      if ('error' in found) return refuse(socket, found);
      const here = addresses.filter(({ host, isTls }) => isTls && host === found.host);
      if (here.some(({ port }) => port === found.port)) {
        socket.write(ESTABLISHED);
        if (head.length > 0) socket.unshift(head);
        return opened(found, kept(socket));
      }
      if (here.length > 0) return refuse(socket, otherPort(found, here));
      tellOnce(found.host);
      if (isStrict) return refuse(socket, notGranted(found));
      passThrough(found, { socket, head, kept });
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';

/** Who asks, and for what: authority-form (RFC 9112, 3.2.3). */
function targetOf(request: IncomingMessage, placeholder: string): Target | Refusal {
  if (isOfBrowser(request)) return BROWSER;
  const [credentials, another] = request.headersDistinct['proxy-authorization'] ?? [];
  const password = another === undefined ? passwordIn(credentials) : undefined;
  if (password?.length !== placeholder.length || !isShown(password, placeholder)) return NOT_SHOWN;
  const written = request.url ?? '';
  const [, hostname = '', port = ''] = /^(\[[0-9a-f:.]+\]|[^\s:/\\@?#[\]]+):(\d{1,5})$/i.exec(written) ?? [];
  const url = URL.parse(`http://${hostname}`);
  if (url === null || hostname === '' || Number(port) < 1 || Number(port) > 65_535) return NO_TARGET;
  // RFC 9110, 7.2. Some clients send none with CONNECT, others one without the port.
  const asked = request.headersDistinct.host ?? [];
  const isSame = (host: string) => [written, hostname].some((one) => one.toLowerCase() === host.toLowerCase());
  if (asked.length > 1 || !asked.every(isSame)) return OTHER_HOST;
  return { host: bareHost(url.hostname), port: Number(port) };
}

/** Ends TLS, and hands what comes to a server of HTTP for that host. */
function openings(
  addresses: readonly PlatformAddress[],
  authority: Authority,
  answer: (entry: Entry) => RequestListener,
): (target: Target, socket: Duplex) => void {
  const made = new Map<string, { server: Server; secureContext: SecureContext }>();
  return ({ host, port }, socket) => {
    const origin = originOf({ isTls: true, host, port });
    const here = made.get(origin) ?? {
      server: createServer({ requestTimeout: 0, keepAliveTimeout: 120_000 }, answer(entryOf(origin, addresses))),
      secureContext: createSecureContext({ ...authority.certificateOf(host), minVersion: 'TLSv1.2' }),
    };
    made.set(origin, here);
    const { server, secureContext } = here;
    // HTTP/2 is not spoken: who offers nothing else is told so in the handshake (RFC 7301, section 3.2).
    const plain = new TLSSocket(socket, { isServer: true, secureContext, ALPNProtocols: ['http/1.1'] });
    plain.on('error', () => socket.destroy());
    server.emit('connection', plain);
  };
}

function entryOf(origin: string, addresses: readonly PlatformAddress[]): Entry {
  const here = addresses.filter((one) => one.isTls && originOf(one) === origin);
  const { host } = new URL(origin);
  return {
    hosts: host.endsWith(']') || !host.includes(':') ? [host, `${host}:443`] : [host],
    isShown: true,
    routeOf: (target) => platformRoute(target, origin, here),
    connectionOf: () => here[0]?.connection,
    unknown: `This is outside of what is granted at this host. There is: ${here.map(({ connection, path }) => `${origin}${path} (${connection})`).join(', ')}.`,
  };
}

/** Both ways, byte for byte. */
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

function refuse(socket: Duplex, { status, reason, error, detail }: Refusal): void {
  const body = `${JSON.stringify({ error, detail })}\n`;
  const challenge = status === 407 ? ['Proxy-Authenticate: Basic realm="agent-broker run"'] : [];
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    ...challenge,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const BROWSER: Refusal = {
  ...{ status: 403, reason: 'Browsers are not served', error: 'not_served' },
  detail: 'Browsers are not served.',
};
const NOT_SHOWN: Refusal = {
  ...{ status: 407, reason: 'Proxy Authentication Required', error: 'wrong_placeholder' },
  detail: 'Only the command of this run is served. Use HTTPS_PROXY as it is, with its user and password.',
};
const NO_TARGET: Refusal = {
  ...{ status: 400, reason: 'Bad Request', error: 'invalid_request' },
  detail: 'The target of CONNECT has to be <host>:<port>.',
};
const OTHER_HOST: Refusal = {
  ...{ status: 403, reason: 'Host is not the target', error: 'not_served' },
  detail: 'The Host header has to be the target of CONNECT.',
};
const otherPort = ({ host }: Target, here: readonly PlatformAddress[]): Refusal => ({
  ...{ status: 403, reason: 'Not the port of the platform', error: 'not_found' },
  detail: `The platform at ${host} is at ${here.map(originOf).join(', ')}.`,
});
const notGranted = ({ host }: Target): Refusal => ({
  ...{ status: 403, reason: 'No host of a granted platform', error: 'not_found' },
  detail: `${host} is the host of no platform that this agent has a grant on, and --strict refuses others.`,
});
const unreachable = ({ host, port }: Target, { code }: NodeJS.ErrnoException): Refusal => ({
  ...{ status: 502, reason: 'The host does not answer', error: 'unreachable' },
  detail: `${host}:${port} did not answer (${code}).`,
});
