/**
 * Refusals before any route, without authentication: of a body's transfer coding, of the requested host, and of what `/git` and `/proxy` never serve.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';
import { isOfBrowser } from '../auth/session-cookie.ts';
import { correlationId } from '../crypto/ids.ts';
import { readTarget } from '../git/git-call.ts';
import { SANDBOX } from '../proxy/answer-headers.ts';
import type { Services } from '../services.ts';
import { Refusal } from './errors.ts';
import { lfsLine, line } from './line.ts';
import { refusalIn } from './problem.ts';
import { refusedReply, thrownRefusal } from './proxy/refusal.ts';
import { askedByLabel } from './proxy/shape.ts';
import { type Reply, send } from './reply.ts';
import type { Route } from './route.ts';

/**
 * A page on the web may point its own name at 127.0.0.1 and then send requests with its own origin (DNS rebinding). A listener on loopback therefore
 * answers only to loopback names and to its public addresses. Where `/git` and `/proxy` have a host of their own (PROXY_HOST), only they are served
 * there, and only there, so that platforms' answers have another origin than the console.
 *
 * A transfer coding beside `chunked` is refused (RFC 9112 section 6.1): Node decodes the chunks and leaves the other coding in place, so a compressed
 * body would be taken for a plain one.
 */
export function guardRequests(services: Services, routes: readonly Route[]): RequestHandler {
  const { config, baseUrl, proxyUrl } = services.broker;
  const loopback = ['127.0.0.1', '::1', 'localhost'].includes(config.host);
  const proxyHost = config.proxyHost === undefined ? undefined : new URL(proxyUrl).hostname;
  const known = new Set(['localhost', '127.0.0.1', '[::1]', new URL(baseUrl).hostname, proxyHost]);
  const dialects = new Map(routes.map((route) => [route.path, route.dialect]));
  const dialectOf = (path: string): Route['dialect'] => {
    if (isGitPath(path)) return 'line';
    return isProxyPath(path) ? 'problem' : dialects.get(path);
  };
  const refuse = (host: string | undefined, path: string, isNameless: boolean): Refusal | undefined => {
    if (host === undefined) return new Refusal('invalid_request', 'Send one Host header, and a target that is a path.');
    if (loopback && !known.has(host) && !isNameless)
      return elsewhere(`The name in the Host header is not a name of this broker. Use ${baseUrl}.`);
    if (proxyHost === undefined || isRaw(path) === (host === proxyHost)) return undefined;
    return elsewhere(
      host === proxyHost
        ? `This host serves /git and /proxy only. Use ${baseUrl}.`
        : `/git and /proxy have a host of their own. Use ${proxyUrl}.`,
    );
  };
  return (request, response, next) => {
    // Before any refusal: also one of the method or of the host has it (AuthZEN Authorization API 1.0, Request Identification in a Response).
    const dialect = dialectOf(request.path);
    if (dialect === 'problem') echoRequestId(request, response);
    // Only HTTP/1.0 allows this. Browsers do not use it; balancers do for health checks (HAProxy's `option httpchk`).
    const host = requestedHost(request);
    const isNameless = host === '' && request.headers.host === undefined;
    const refusal = refuseCodings(request.headers) ?? refuse(host, request.path, isNameless);
    if (refusal === undefined) return next();
    const id = correlationId();
    send(response, refusalIn(dialect, refusal, { services, correlationId: id }), id);
  };
}

/**
 * Returns the client's request id with every answer, refusals included, unchanged. Ids with other characters than ASCII are dropped, because Node
 * would write them as other bytes than it read.
 */
function echoRequestId(request: IncomingMessage, response: ServerResponse): void {
  const id = request.headers['x-request-id'];
  if (id !== undefined && /^[\t\x20-\x7e]*$/.test(String(id))) response.setHeader('X-Request-ID', id);
}

function refuseCodings({ 'transfer-encoding': codings }: IncomingHttpHeaders): Refusal | undefined {
  if (codings === undefined || codings.trim().toLowerCase() === 'chunked') return undefined;
  return new Refusal(
    'not_implemented',
    'The only Transfer-Encoding that is read is chunked; send gzip as Content-Encoding.',
  );
}

/** Whether a path is below `/git` or `/proxy`. */
export const isRaw = (path: string): boolean => isGitPath(path) || isProxyPath(path);

const elsewhere = (detail: string): Refusal => new Refusal('misdirected_request', detail);

/**
 * Returns the requested host name, in lower case and without the port (RFC 9112 section 3.2): from an absolute target, else from the Host header;
 * empty when an HTTP/1.0 request has none. Undefined for invalid requests: no Host header in HTTP/1.1, two of them (Node would silently use the
 * first), or a target that is not a URL.
 */
export function requestedHost(request: IncomingMessage): string | undefined {
  const raw = request.rawHeaders;
  let host: string | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i];
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue;
    if (host !== undefined) return undefined;
    host = raw[i + 1] ?? '';
  }
  const target = request.url ?? '/';
  if (!target.startsWith('/') && target !== '*') {
    if (!URL.canParse(target)) return undefined;
    host = new URL(target).host;
  }
  if (host === undefined && request.httpVersion !== '1.0') return undefined;
  return (host ?? '').replace(/:\d+$/, '').toLowerCase();
}

/** Whether errors of this path are formatted as a line. */
const isGitPath = (path: string): boolean => path === '/git' || path.startsWith('/git/');

/** Refuses unknown paths below `/git`, and browsers, for which it is not meant. */
export function guardGit(baseUrl: string): RequestHandler {
  return (request, response, next) => {
    if (!isGitPath(request.path)) return next();
    const reply = refuseBrowser(request, baseUrl) ?? refuseGitPath(request);
    if (reply === undefined) return next();
    send(response, reply, correlationId());
  };
}

const refuseBrowser = (request: IncomingMessage, baseUrl: string): Reply | undefined =>
  isOfBrowser(request, baseUrl)
    ? line(403, 'forbidden', 'this address is for git clients, not for browsers')
    : undefined;

const NO_LFS = 'Git LFS is not served: clone with GIT_LFS_SKIP_SMUDGE=1 to go without its files; they cannot be pushed';

/** Checks the path as sent, because a router may decode it to another one. A request with another method is answered with those that are allowed. */
function refuseGitPath({ method = '', url = '' }: IncomingMessage): Reply | undefined {
  const asked = readTarget(method, url);
  const targets = asked === 'unknown' ? ['GET', 'POST'].map((one) => readTarget(one, url)) : [asked];
  if (targets.every((one) => one === 'unknown')) {
    const isLfs = /^\/git\/[^/]+\/[^/]+\/(?:info\/)?lfs(?:\/|$)/.test(url);
    return isLfs
      ? lfsLine(404, 'not_found', NO_LFS)
      : line(404, 'not_found', 'no such address; clone from /git/<owner>/<repo>');
  }
  return targets.every((one) => one === 'malformed')
    ? line(400, 'invalid_request', 'name one service, git-upload-pack or git-receive-pack; dumb HTTP is not served')
    : undefined;
}

/** Whether answers of this path come from a platform, or are refusals of `/proxy`. */
const isProxyPath = (path: string): boolean => path.startsWith('/proxy/');

/**
 * Refuses browsers below `/proxy`, for which it is not meant, and protocol upgrades and the like. Every answer there, refusals included, is
 * sandboxed.
 */
export function guardProxy(services: Services): RequestHandler {
  return (request, response, next) => {
    if (!isProxyPath(request.path)) return next();
    for (const [name, value] of Object.entries(SANDBOX)) response.setHeader(name, value);
    const refusal = refuseProxied(request, services.broker.baseUrl);
    if (refusal === undefined) return next();
    const id = correlationId();
    const reply =
      refusal.code === 'not_implemented'
        ? refusedReply(thrownRefusal(refusal), { correlationId: id }, askedByLabel(request))
        : refusalIn('problem', refusal, { services, correlationId: id });
    send(response, reply, id);
  };
}

function refuseProxied(request: IncomingMessage, baseUrl: string): Refusal | undefined {
  if (isOfBrowser(request, baseUrl))
    return new Refusal('forbidden', 'This address is for programs, not for browsers: open the console instead.');
  const { upgrade, connection = '' } = request.headers;
  // Some clients offer HTTP/2 without TLS and continue without it; any other upgrade would change the protocol.
  if (upgrade !== undefined && /\bupgrade\b/i.test(connection) && !/^h2c?$/i.test(upgrade))
    return new Refusal('not_implemented', 'Connections that are upgraded (WebSocket, SPDY) are not passed on.');
  return undefined;
}
