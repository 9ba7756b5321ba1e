/** What comes before all routes: how a request's body is coded, which host it is for, and whether it is served there. */
import type { IncomingHttpHeaders } from 'node:http';
import type { RequestHandler } from 'express';
import { correlationId } from '../crypto/ids.ts';
import type { Services } from '../services.ts';
import { Refusal } from './errors.ts';
import { isGitPath } from './git-guard.ts';
import { refusalIn } from './problem.ts';
import { isProxyPath } from './proxy-guard.ts';
import { send } from './reply.ts';
import { requestedHost } from './requested-host.ts';
import type { Route } from './route.ts';

/**
 * A page on the web may point its own name at 127.0.0.1 and then speak to us as itself (DNS rebinding). A listener on
 * loopback therefore answers only to loopback names and to its public addresses. Where `/git` and `/proxy` have a host of their own
 * (PROXY_HOST), they are served there alone, and nothing else is, so that what platforms answer has another origin than the console.
 *
 * A transfer coding beside `chunked` is refused (RFC 9112 section 6.1): Node takes the chunks apart and leaves what is in them as it is, so that a
 * compressed body would be taken for a plain one.
 */
export function guardRequests(services: Services, routes: readonly Route[]): RequestHandler {
  const { config, baseUrl, proxyUrl } = services.broker;
  const loopback = ['127.0.0.1', '::1', 'localhost'].includes(config.host);
  const proxyHost = config.proxyHost === undefined ? undefined : new URL(proxyUrl).hostname;
  const known = new Set(['localhost', '127.0.0.1', '[::1]', new URL(baseUrl).hostname, proxyHost]);
  const dialects = new Map(routes.map((route) => [route.path, route.dialect]));
  const refuse = (host: string | undefined, path: string, isNameless: boolean): Refusal | undefined => {
    if (host === undefined) return new Refusal('invalid_request', 'Send one Host header, and a target that is a path.');
    if (loopback && !known.has(host) && !isNameless)
      return elsewhere(`This broker does not answer to the name in the Host header. Use ${baseUrl}.`);
    if (proxyHost === undefined || isRaw(path) === (host === proxyHost)) return undefined;
    return elsewhere(
      host === proxyHost
        ? `This host serves /git and /proxy only. Use ${baseUrl}.`
        : `/git and /proxy have a host of their own. Use ${proxyUrl}.`,
    );
  };
  return (request, response, next) => {
    // Of HTTP/1.0 alone, which no browser speaks; balancers do, to ask whether the broker is there (HAProxy's `option httpchk`).
    const host = requestedHost(request);
    const isNameless = host === '' && request.headers.host === undefined;
    const refusal = refuseCodings(request.headers) ?? refuse(host, request.path, isNameless);
    if (refusal === undefined) return next();
    const id = correlationId();
    const dialect = isGitPath(request.path)
      ? 'line'
      : isProxyPath(request.path)
        ? 'problem'
        : dialects.get(request.path);
    send(response, refusalIn(dialect, refusal, { services, correlationId: id }), id);
  };
}

function refuseCodings({ 'transfer-encoding': codings }: IncomingHttpHeaders): Refusal | undefined {
  if (codings === undefined || codings.trim().toLowerCase() === 'chunked') return undefined;
  return new Refusal(
    'not_implemented',
    'The only Transfer-Encoding that is read is chunked; send gzip as Content-Encoding.',
  );
}

const isRaw = (path: string): boolean => isGitPath(path) || isProxyPath(path);

const elsewhere = (detail: string): Refusal => new Refusal('misdirected_request', detail);
