/** The listening socket: taken before anything answers, and let go of without cutting off what is in flight. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import type { Log } from '../log/log.ts';
import { makeRefusalLog } from '../log/refusals.ts';
import { answerUnparsedRequests } from './unparsed-requests.ts';

export type Listener = {
  port: number;
  /** How this machine reaches the listener. */
  localUrl: string;
  /** Answers requests from now on, those that came too early first. */
  serve(app: RequestListener): void;
  /** How many connections of clients are open. */
  connections(): Promise<number>;
  /** From now on each answer is the last on its connection, so that clients and proxies come by another one. */
  drain(): void;
  /**
   * Takes no new connections and lets what is in flight finish for `graceMs`; then calls `cutOff`, which makes whatever
   * the requests still wait for fail, and gives them a moment to say so. Safe to call twice.
   */
  close(options: { graceMs: number; cutOff?: () => Promise<void> }): Promise<void>;
};

/** A response of which nothing is taken for so long is cut: it would be kept in memory for as long as its reader likes. */
const UNTAKEN_MS = 30_000;
/** How long the headers of a request may take to come. */
const HEADERS_MS = 15_000;
/** How long a client's connection is kept that it does not use, which Node tells it. Proxies' are kept longer (http/keep-alive.ts). */
const KEEP_ALIVE_MS = 5_000;
/** How much longer than that: a client that was busy for seconds since it looked at the time sends on a connection that is there, and a POST is not cut. */
const KEEP_ALIVE_MARGIN_MS = 5_000;
/** How long a request that was cut off has to be recorded and answered. */
const LAST_WORD_MS = 1_000;
const SWEEP_MS = 50;

/** Listens; requests wait until `serve`. Throws, in words, when the port is taken. */
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
    // How often both are looked at: every 30 s by default, so that headers could take three times as long.
    connectionsCheckingInterval: headersMs / 3,
    // The application refuses a missing Host header itself, in the error envelope.
    requireHostHeader: false,
  });
  // maxHeaderSize bounds them. Of more than a thousand Node 24.11 leaves out the rest without a word: a second Authorization, or what a proxy adds at
  // the end, by which a stranger is told from whoever is on this machine. Later ones refuse the request.
  server.maxHeadersCount = 0;
  answerUnparsedRequests(server, isLong);
  const mostConnections = connectionLimit();
  if (mostConnections !== undefined) server.maxConnections = mostConnections;
  const refusals = makeRefusalLog(log);
  server.on('drop', () => refusals.refused({ limit: `${mostConnections} connections` }));
  server.on('request', (_, response) => cutUntaken(response, untakenMs));
  // Who may not send its body is told so before it does.
  server.on('checkContinue', (request, response) => {
    if (!isLong(request)) response.writeContinue();
    server.emit('request', request, response);
  });
  const early: [IncomingMessage, ServerResponse][] = [];
  const hold = (request: IncomingMessage, response: ServerResponse) => early.push([request, response]);
  server.on('request', hold);
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => reject(inWords(error, host, port));
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
    // Who asks again on a connection that is kept alive would keep it busy until the cut.
    drain();
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
    let lastWord: NodeJS.Timeout | undefined;
    const cut = setTimeout(async () => {
      if (cutOff) await cutOff().catch((error) => log.error({ err: error }, 'calls in flight could not be cut off'));
      lastWord = setTimeout(() => server.closeAllConnections(), cutOff ? LAST_WORD_MS : 0);
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
      server.off('request', hold);
      server.on('request', app);
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

/** Requests whose bodies may take longer than others. Their doors let no client stall. */
const isLong = ({ url = '' }: IncomingMessage): boolean => url.startsWith('/git/') || url.startsWith('/proxy/');

/** The socket's timer starts again whenever some of what waits there was taken, so long answers to slow readers stand. */
function cutUntaken(response: ServerResponse, ms: number): void {
  response.setTimeout(ms, () => {
    const { socket } = response;
    if (socket !== null && socket.writableLength > 0) socket.destroy();
  });
}

/**
 * Three quarters of the file descriptors that this process may have open: the others are for the store and for platforms. Without
 * a limit of its own the listener takes connections until there is no descriptor left, and then drops them without telling us.
 * Undefined where Linux does not say how many there are.
 */
function connectionLimit(): number | undefined {
  try {
    const [, open] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return open === undefined ? undefined : Math.floor((Number(open) * 3) / 4);
  } catch {
    return undefined;
  }
}

/** An address to connect to for one to listen on: who listens on all of them listens on loopback too. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}

function inWords(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE')
    return new Error(
      `Port ${port} on ${host} is taken: another broker, or another program, listens there. Choose another with PORT.`,
      { cause: error },
    );
  if (error.code === 'EACCES')
    return new Error(`This user may not listen on port ${port}. Choose one above 1023 with PORT.`, { cause: error });
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND')
    return new Error(`${host} is no address of this machine. Choose another with HOST.`, { cause: error });
  return error;
}

/** Where a call of ours would come back to us: `host:port` of the public addresses and of the listener. */
export function ownAddresses(baseUrls: readonly string[], host: string, port: number): string[] {
  const publicOnes = baseUrls.map((text) => {
    const url = new URL(text);
    return `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`;
  });
  const listener = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return [...new Set([...publicOnes, listener, `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])];
}
