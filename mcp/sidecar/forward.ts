/** Sends one request on to the broker, signed by the agent, and its answer back as it comes. */
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
import { type ErrorForm, type Refusal, refuse } from './refusal.ts';

export type Broker = {
  /** Without a trailing slash. */
  url: string;
  /** Makes a token for one request. Throws AgentKeyError where it is read and not there. */
  token: () => string;
};

export type Forwarded = {
  /** Path and query at the broker. */
  path: string;
  /** Names and values in turn, without what stood for a key. */
  headers: readonly string[];
  /** The header that the token stands in, and its value. */
  authorization: (token: string) => readonly [string, string];
  /** Turns addresses of the broker into such as the command can use. */
  back: (address: string) => string;
  /** Of the platform that is asked. */
  errors: ErrorForm | undefined;
  /** Told of the headers of the answer. */
  heard?: (headers: IncomingHttpHeaders) => void;
};

/** Whoever still sends what nobody reads is cut off after so long. */
const LINGER_MS = 5_000;

/** RFC 9110, 7.6.1; `Expect` was answered here; the token of an agent is for the sidecar alone to give. */
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
const ADDRESSES = new Set(['location', 'content-location', 'link']);

export type Forward = (request: IncomingMessage, response: ServerResponse, what: Forwarded) => void;

/** Throws TypeError when the broker's address is no address. `close` cuts what is under way. */
export function forwarding({ url, token }: Broker): { forward: Forward; close: () => void } {
  const isTls = new URL(url).protocol === 'https:';
  // Ends connections that are free alone: nobody listens for the timeout of others.
  const kept = { keepAlive: true, timeout: IDLE_MS, ...environmentProxy() };
  const agent = isTls ? new HttpsAgent(kept) : new HttpAgent(kept);
  const open = isTls ? requestHttps : requestHttp;
  const forward: Forward = (request, response, { path, headers, authorization, back, errors, heard }) => {
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
      back,
      heard,
      failed: ({ code }) => refuse(response, unreachable(url, code), errors),
    });
  };
  return { forward, close: () => agent.destroy() };
}

type Relayed = {
  /** Begins the request; `framing`: headers that say how its body comes, names and values in turn. */
  open: (framing: readonly string[]) => ClientRequest;
  /** Of addresses in headers of the answer. */
  back?: (address: string) => string;
  heard?: ((headers: IncomingHttpHeaders) => void) | undefined;
  /** There is no answer, and nothing was written yet. */
  failed: (error: NodeJS.ErrnoException) => void;
};

/** Passes the body of a request on as it comes, and so the answer. Whoever is no longer there to read the answer needs none. */
export function relay(
  request: IncomingMessage,
  response: ServerResponse,
  { open, back, heard, failed }: Relayed,
): void {
  const isChunked = request.headers['transfer-encoding'] !== undefined;
  const asking = open(isChunked ? ['Transfer-Encoding', 'chunked'] : []);
  asking.on('response', (answer) => {
    heard?.(answer.headers);
    response.writeHead(answer.statusCode ?? 502, passedOn(answer.rawHeaders, back));
    // What is written now goes out now, also when the body is long in coming.
    response.flushHeaders();
    pipeline(answer, response, () => {
      // The answer to a request that is still being sent: a client that cannot write the rest would not read it.
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

/** Headers without those of one connection; names and values in turn. */
export function passedOn(headers: readonly string[], back = (address: string) => address): string[] {
  const passed: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const [name = '', value = ''] = headers.slice(i, i + 2);
    if (!NOT_SENT_ON.has(name.toLowerCase()))
      passed.push(name, ADDRESSES.has(name.toLowerCase()) ? back(value) : value);
  }
  return passed;
}

/** Without a connection nothing can have been sent. */
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

function unreachable(url: string, code = 'no code'): Refusal {
  const sent = UNSENT.has(code) ? 'Nothing was sent.' : 'The call may have been made: look before it is sent again.';
  const detail = `The broker at ${url} did not answer (${code}). ${sent} "agent-broker doctor" looks further.`;
  return { status: 502, error: 'broker_unreachable', detail };
}
