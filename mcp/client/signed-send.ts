/**
 * HTTP requests, each with a fresh token, on keep-alive connections. Uses `node:http`: `fetch` needs 16 MB more memory and 70 ms of processor time to
 * load, and
 * so does an `import` of `node:http`, which reads the getters that load it. `node:https`, which loads all of TLS, is loaded only for https addresses.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { type BrokerReply, type BrokerRequest, BrokerUnreachable, type Send } from './send.ts';

type Options = {
  /** Address of the broker, without a trailing slash. */
  url: string;
  /** Returns the bearer token; called for each request. Without `token`, requests carry none. */
  token?: (() => string) | undefined;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>> | undefined;
  /** How long a response may stall before the request is abandoned, in milliseconds. */
  timeoutMs?: number;
  /** How long an idle connection is kept, in milliseconds. */
  idleMs?: number;
};

/** Longer than the broker's long polls of 50 s and its own requests to others. Governed calls may take longer. */
const TIMEOUT_MS = 150_000;
/**
 * Shorter than the idle timeout of proxies and balancers (AWS 60 s, nginx 75 s), which close without notice. A connection that ended while this machine
 * was asleep, or on another network, is not reported as closed: a request on it would wait for all of the timeout.
 */
export const IDLE_MS = 30_000;

/**
 * Options for an agent of `node:http`: use the proxies of the environment (HTTPS_PROXY, NO_PROXY, …) where NODE_USE_ENV_PROXY is 1, as Node's own
 * agents and `fetch` do.
 */
export const environmentProxy = (environment = process.env): { proxyEnv?: typeof process.env } =>
  environment.NODE_USE_ENV_PROXY === '1' ? { proxyEnv: environment } : {};

/** Redirects are not followed: requests carry tokens. Throws TypeError when `url` is no http or https address. */
export function signedSend({ url, token, headers = {}, timeoutMs = TIMEOUT_MS, idleMs = IDLE_MS }: Options): Send {
  const { protocol } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') throw new TypeError(`${url} is no http or https address.`);
  const isTls = protocol === 'https:';
  const { Agent, request: open } = process.getBuiltinModule(isTls ? 'node:https' : 'node:http');
  // The agent's timeout ends idle connections; a request in flight has its own timeout.
  const agent = new Agent({ keepAlive: true, timeout: idleMs, ...environmentProxy() });

  /** Begins the request. Throws AgentKeyError, or BrokerUnreachable when the request cannot be written as HTTP and JSON. */
  const begin = ({ method, path, headers: own = {}, body, signal, ...asked }: BrokerRequest): Begun => {
    const bearer = token && { authorization: `Bearer ${token()}` };
    try {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const sent = {
        accept: 'application/json',
        ...(text !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
        ...headers,
        ...own,
        ...bearer,
      };
      const timeout = asked.timeoutMs ?? timeoutMs;
      return { text, request: open(url + path, { agent, method, headers: sent, timeout, ...(signal && { signal }) }) };
    } catch (error) {
      throw unsendable(error as Error);
    }
  };

  const exchange = (asked: BrokerRequest): Promise<BrokerReply> =>
    new Promise((resolve, reject) => {
      const { text, request } = begin(asked);
      request.on('response', (response) => readAll(response).then(resolve, reject));
      request.on('timeout', () => request.destroy(Object.assign(new Error(), { code: 'timeout' })));
      // Nothing is sent on a new connection before it is established; a reused one is.
      let isEstablished = true;
      request.on('socket', (socket) => {
        if (!socket.connecting) return;
        isEstablished = false;
        socket.once(isTls ? 'secureConnect' : 'connect', () => {
          isEstablished = true;
        });
      });
      request.on('error', (error) => reject(isEstablished ? error : new Unsent('Not connected.', { cause: error })));
      request.end(text);
    });

  return async (request) => {
    try {
      return await exchange(request);
    } catch (error) {
      request.signal?.throwIfAborted();
      // The token could not be made, or the request could not be written: nothing was sent.
      if ((error as Error).name === 'AgentKeyError' || error instanceof BrokerUnreachable) throw error;
      const isCut = error instanceof Cut;
      const isUnsent = error instanceof Unsent;
      const code = codeOf(isCut || isUnsent ? error.cause : error);
      throw new BrokerUnreachable(`The broker at ${url} does not answer (${code}).`, {
        maybeSent: !isUnsent && !NEVER_CONNECTED.has(code),
        isCut,
      });
    }
  };
}

type Begun = { text: string | undefined; request: ClientRequest };

/** The error of a request that is not JSON (a BigInt, a circular structure), or whose headers contain what no header can contain. */
const unsendable = ({ message }: Error): BrokerUnreachable =>
  new BrokerUnreachable(`The request cannot be sent: ${message.split('\n', 1)[0]}.`, {
    code: 'invalid_request',
    maybeSent: false,
  });

/** The response began and was cut off. */
class Cut extends Error {}

/** The connection failed, or its TLS handshake: nothing was sent. */
class Unsent extends Error {}

async function readAll(response: IncomingMessage): Promise<BrokerReply> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch (error) {
    throw new Cut('The response broke off.', { cause: error });
  }
  const { statusCode = 0, headers } = response;
  const get = (name: string): string | null => {
    const value = headers[name.toLowerCase()];
    return value === undefined ? null : String(value);
  };
  return { status: statusCode, headers: { get }, text: Buffer.concat(chunks).toString('utf8') };
}

/** Returns the error code; of the last address, where a name resolves to several. */
function codeOf(error: unknown): string {
  const { code, errors, message } = error as { code?: string; errors?: { code?: string }[]; message: string };
  return code ?? errors?.at(-1)?.code ?? message;
}

/** Errors from before the connection was established, also through a proxy: nothing was sent. */
const NEVER_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]);
