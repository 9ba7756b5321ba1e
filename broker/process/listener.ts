/** The listening socket: bound before anything can answer, and closed without cutting off requests in flight. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Log } from '../log/log.ts';
import { makeRefusalLog } from '../log/refusals.ts';
import { MAX_PIPELINED, pipelineLimit } from './pipelined-requests.ts';
import { answerUnparsedRequests, refuseUnparsed } from './unparsed-requests.ts';

export type Listener = {
  port: number;
  /** URL of the listener on this machine. */
  localUrl: string;
  /** Serves requests from now on, first those that arrived before. */
  serve(app: RequestListener): void;
  /** Returns the number of open connections of clients. */
  connections(): Promise<number>;
  /** Makes each further response the last on its connection, so that clients and proxies reconnect elsewhere. */
  drain(): void;
  /**
   * Accepts no new connections and lets requests in flight finish for `graceMs`; then calls `cutOff`, which makes what the requests still
   * wait for fail, and gives them a moment to send that response. Safe to call twice.
   */
  close(options: { graceMs: number; cutOff?: () => Promise<void> }): Promise<void>;
};

/** Many proxies and servers accept a hundred. Two thousand, which fit into `maxHeaderSize`, cost ten times as much as an ordinary request. */
const MAX_HEADERS = 200;
/** A response of which the client reads nothing for this long is cut off: otherwise a client could keep it in memory forever. */
const UNTAKEN_MS = 30_000;
/** How long the headers of a request may take to arrive. */
const HEADERS_MS = 15_000;
/** How long an idle connection of a client is kept, which Node announces to the client. Proxies' are kept longer (http/app.ts). */
const KEEP_ALIVE_MS = 5_000;
/** Additional time beyond that, so that a slow client does not send a POST on a connection which is just being closed. */
const KEEP_ALIVE_MARGIN_MS = 5_000;
/** How long a request that was cut off has to be recorded and answered. */
const FINAL_ANSWER_MS = 1_000;
const SWEEP_MS = 50;
const ACCEPTING_MS = 1_000;
/** An idle turn takes a few microseconds, one with a request hundreds. */
const SHORT_TURN_MS = 0.02;

/** Starts listening; requests wait until `serve`. Throws, in words, when the port is taken. */
export async function openListener(
  { host, port }: { host: string; port: number },
  log: Log,
  { untakenMs = UNTAKEN_MS, headersMs = HEADERS_MS }: { untakenMs?: number; headersMs?: number } = {},
): Promise<Listener> {
  const server = createServer({
    maxHeaderSize: 16 * 1024,
    headersTimeout: headersMs,
    requestTimeout: 60_000,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveTimeoutBuffer: KEEP_ALIVE_MARGIN_MS,
    // How often both timeouts are checked: by default every 30 s, so that headers could take three times as long.
    connectionsCheckingInterval: headersMs / 3,
    // The application refuses a missing Host header itself, in the error envelope.
    requireHostHeader: false,
  });
  // Node 24.21 refuses a request with more headers; 24.11 drops some of the rest, so that the check in the handler below is needed.
  server.maxHeadersCount = MAX_HEADERS;
  answerUnparsedRequests(server, isLong);
  const mostConnections = connectionLimit();
  if (mostConnections !== undefined) server.maxConnections = mostConnections;
  const refusals = makeRefusalLog(log);
  server.on('drop', () => refusals.refused({ limit: `${mostConnections} connections` }));
  // A client that expects 100-continue for a long body is refused before it sends the body.
  server.on('checkContinue', (request, response) => {
    if (!isLong(request)) response.writeContinue();
    server.emit('request', request, response);
  });
  const early: [IncomingMessage, ServerResponse][] = [];
  let handle: RequestListener = (request, response) => early.push([request, response]);
  const isOneTooMany = pipelineLimit(() => refusals.refused({ limit: `${MAX_PIPELINED} pipelined requests` }));
  server.on('request', (request, response) => {
    // What was dropped may be what the broker decides by: a second Authorization, or what a proxy adds at the end.
    if (request.rawHeaders.length > MAX_HEADERS * 2) return refuseUnparsed(request.socket, 431);
    if (isOneTooMany(response)) return;
    cutUntaken(response, untakenMs);
    handle(request, response);
  });
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => reject(listenError(error, host, port));
    server.once('error', failed);
    server.listen(port, host, () => {
      server.off('error', failed);
      server.on('error', (error) => log.error({ err: error }, 'the listener failed'));
      resolve();
    });
  });
  let closing: Promise<void> | undefined;
  let draining = false;

  const drain = (): void => {
    if (draining) return;
    draining = true;
    server.prependListener('request', (_, response) => response.setHeader('Connection', 'close'));
  };

  const close: Listener['close'] = async ({ graceMs, cutOff }) => {
    // Otherwise a client that repeats requests on a kept-alive connection would keep it busy until the cut-off.
    drain();
    await acceptQueued(server);
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
    let lastWord: NodeJS.Timeout | undefined;
    const cut = setTimeout(async () => {
      if (cutOff) await cutOff().catch((error) => log.error({ err: error }, 'calls in flight could not be aborted'));
      lastWord = setTimeout(() => server.closeAllConnections(), cutOff ? FINAL_ANSWER_MS : 0);
    }, graceMs);
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeIdleConnections();
    });
    clearTimeout(cut);
    clearTimeout(lastWord);
    clearInterval(sweep);
  };

  const bound = server.address() as AddressInfo;
  return {
    port: bound.port,
    localUrl: `http://${reachable(host)}:${bound.port}`,
    serve: (app) => {
      handle = app;
      for (const [request, response] of early.splice(0)) app(request, response);
    },
    connections: () => promisify(server.getConnections.bind(server))(),
    drain,
    close: (options) => {
      closing ??= close(options);
      return closing;
    },
  };
}

/**
 * Accepts the connections that the kernel has completed already. Closing the socket would reset them, and a proxy does not repeat a POST that it has
 * sent on one. libuv accepts one connection per turn of the event loop, so this waits, for `ACCEPTING_MS` at most, for a turn without one. The turn has
 * to be short: what arrives after the socket was checked in it is reset.
 */
async function acceptQueued(server: Server): Promise<void> {
  let accepted = 0;
  const count = () => accepted++;
  server.on('connection', count);
  const until = performance.now() + ACCEPTING_MS;
  // The first turn may end without having checked the socket.
  await nextTurn();
  for (let now = performance.now(), isQuiet = false; !isQuiet && now < until; ) {
    const before = { accepted, now };
    await nextTurn();
    now = performance.now();
    isQuiet = accepted === before.accepted && now - before.now < SHORT_TURN_MS;
  }
  server.off('connection', count);
}

/** Requests whose bodies may take longer than others. Their handlers cut off clients that stall. */
const isLong = ({ url = '' }: IncomingMessage): boolean => url.startsWith('/git/') || url.startsWith('/proxy/');

/** Cuts off a response that is not read. The socket's timer restarts whenever buffered data is read, so long responses to slow readers are safe. */
function cutUntaken(response: ServerResponse, ms: number): void {
  response.setTimeout(ms, () => {
    const { socket } = response;
    if (socket !== null && socket.writableLength > 0) socket.destroy();
  });
}

/**
 * Returns three quarters of the file descriptors that this process may open: the others are for the store and for platforms. Without a limit
 * of its own the listener accepts connections until there is no descriptor left, and then drops them without an event.
 * Undefined where Linux does not report the limit.
 */
function connectionLimit(): number | undefined {
  try {
    const [, open] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return open === undefined ? undefined : Math.floor((Number(open) * 3) / 4);
  } catch {
    return undefined;
  }
}

/** Returns an address to connect to for an address to listen on: a listener on all addresses includes loopback. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new Error(
      `Port ${port} on ${host} is in use: another broker, or another program, listens there. Choose another with PORT.`,
      { cause: error },
    );
  if (error.code === 'EACCES')
    return new Error(`This user may not listen on port ${port}. Choose one above 1023 with PORT.`, { cause: error });
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND')
    return new Error(`${host} is no address of this machine. Choose another with HOST.`, { cause: error });
  return error;
}

/** Returns the addresses at which a call of the broker would reach the broker itself: `host:port` of the public addresses and of the listener. */
export function ownAddresses(baseUrls: readonly string[], host: string, port: number): string[] {
  const publicOnes = baseUrls.map((text) => {
    const url = new URL(text);
    return `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`;
  });
  const listener = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return [...new Set([...publicOnes, listener, `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])];
}
