/** Forwards one request to the broker, signed by the agent, and streams the answer back. */
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream';
import { environmentProxy, IDLE_MS } from '../client/signed-send.ts';
import { AgentKeyError } from '../client/signer.ts';
import { type ErrorForm, ONE_LINE, type Refusal, refuse } from './refusal.ts';

export type Broker = {
  /** Address of the broker, without a trailing slash. */
  url: string;
  /** Makes a token for one request. Throws AgentKeyError when the token file holds no token. */
  token: () => string;
  /** Called after each 401: the broker may have refused the token, because the agent has another key. */
  refused?: (() => void) | undefined;
};

export type Forwarded = {
  /** Path and query at the broker. */
  path: string;
  /** Names and values in turn, without the headers that held the placeholder. */
  headers: readonly string[];
  /** Builds the name and value of the header that carries the token. */
  authorization: (token: string) => readonly [string, string];
  /** The error format of the platform that is called, or that of git. */
  errors: ErrorForm | typeof ONE_LINE | undefined;
  /** Called with the headers of the answer. */
  heard?: (headers: IncomingHttpHeaders) => void;
};

/** A client that still sends a body after the answer is disconnected after this time. */
const LINGER_MS = 5_000;

/** Hop-by-hop headers (RFC 9110, 7.6.1); `Expect`, which is answered here; the agent's token, which only the sidecar may add. */
const NOT_SENT_ON = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'expect',
  'x-svc-authorization',
]);

export type Forward = (request: IncomingMessage, response: ServerResponse, what: Forwarded) => void;

/** `close` aborts requests in flight. Throws TypeError when the broker's address is not a URL. */
export function forwarding({ url, token, refused }: Broker): { forward: Forward; close: () => void } {
  const isTls = new URL(url).protocol === 'https:';
  // The agent's timeout closes idle connections only: there is no timeout listener for a connection in use.
  const kept = { keepAlive: true, timeout: IDLE_MS, ...environmentProxy() };
  const agent = isTls ? new HttpsAgent(kept) : new HttpAgent(kept);
  const open = isTls ? requestHttps : requestHttp;
  const forward: Forward = (request, response, { path, headers, authorization, errors, heard }) => {
    let shown: readonly string[];
    try {
      shown = authorization(token());
    } catch (error) {
      if (!(error instanceof AgentKeyError)) throw error;
      const detail = `${error.message} Nothing was sent.`;
      return refuse(response, { status: 502, error: 'token_unreadable', detail }, errors);
    }
    const sent = ['Host', new URL(url).host, ...passedOn(headers), ...shown];
    relay(request, response, {
      open: (more) => open(`${url}${path}`, { agent, method: request.method, headers: [...sent, ...more] }),
      heard: (answered, status) => {
        if (status === 401) refused?.();
        heard?.(answered);
      },
      statusOf: (status) => (errors === ONE_LINE && status === 401 ? 403 : status),
      failed: ({ code }) => refuse(response, unreachable(url, code), errors),
    });
  };
  return { forward, close: () => agent.destroy() };
}

type Relayed = {
  /** Begins the request. `framing`: headers that declare how the body is framed, names and values in turn. */
  open: (framing: readonly string[]) => ClientRequest;
  heard?: ((headers: IncomingHttpHeaders, status: number | undefined) => void) | undefined;
  /**
   * Maps the status of the answer. A 401 refuses the token of the sidecar, but would make git ask the person for a user name, and not print why.
   */
  statusOf?: (status: number) => number;
  /** Called when there is no answer and nothing was written to the client yet. */
  failed: (error: NodeJS.ErrnoException) => void;
};

/** Streams the body of a request to the broker, and the answer back. When the client disconnects, the forwarded request is aborted. */
export function relay(
  request: IncomingMessage,
  response: ServerResponse,
  { open, heard, statusOf = (status) => status, failed }: Relayed,
): void {
  const isChunked = request.headers['transfer-encoding'] !== undefined;
  const asking = open(isChunked ? ['Transfer-Encoding', 'chunked'] : []);
  asking.on('response', (answer) => {
    heard?.(answer.headers, answer.statusCode);
    response.writeHead(statusOf(answer.statusCode ?? 502), passedOn(answer.rawHeaders));
    // Sends the headers immediately, also when the body is slow to arrive.
    response.flushHeaders();
    // In HTTP/1.0 the end of the connection is the end of the answer, so an answer that breaks off has to end with a reset.
    if (request.httpVersion === '1.0') answer.once('error', () => response.socket?.resetAndDestroy());
    pipeline(answer, response, () => {
      // The answer is complete while the request is still being sent: read and discard the rest, because a client that cannot write may not read the
      // answer.
      if (request.complete || request.destroyed) return;
      request.unpipe(asking);
      asking.destroy();
      request.resume();
      setTimeout(() => request.complete || request.destroy(), LINGER_MS).unref();
    });
  });
  asking.on('error', (error) => {
    if (!response.headersSent && !response.destroyed) failed(error);
  });
  response.once('close', () => {
    if (!response.writableFinished) asking.destroy();
  });
  if (isChunked || Number(request.headers['content-length'] ?? 0) > 0) {
    request.on('error', () => asking.destroy());
    request.pipe(asking);
  } else asking.end();
}

/** Returns the headers without hop-by-hop ones; names and values in turn. */
export const passedOn = (headers: readonly string[]): string[] =>
  headers.filter((_, at) => !NOT_SENT_ON.has(headers[at - (at % 2)]?.toLowerCase() ?? ''));

/** Errors that mean no connection was made, so nothing was sent. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

function unreachable(url: string, code = 'no code'): Refusal {
  const sent = UNSENT.has(code) ? 'Nothing was sent.' : 'The call may have been made: look before it is sent again.';
  const detail = `The broker at ${url} did not answer (${code}). ${sent} "agent-broker doctor" looks further.`;
  // A broker that is being restarted refuses connections.
  const soon = code === 'ECONNREFUSED' ? { retryAfterSeconds: 1 } : {};
  return { status: 502, error: 'broker_unreachable', detail, ...soon };
}
