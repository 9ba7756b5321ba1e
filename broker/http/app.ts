/** The Express application: hardening, bodies, routes, and what was not found. */
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express';
import { correlationId } from '../crypto/ids.ts';
import { makeRefusalLog } from '../refusal-log.ts';
import type { Services } from '../services.ts';
import { allowAnyOrigin, answerPreflight } from './cross-origin.ts';
import { errorReply } from './envelope.ts';
import { Refusal } from './errors.ts';
import { guardGit, isGitPath } from './git-guard.ts';
import { refusalIn } from './problem.ts';
import { makeRateLimits } from './rate-limits.ts';
import { countRefusedBearers } from './refused-bearers.ts';
import { send } from './reply.ts';
import { echoRequestId } from './request-id.ts';
import { requestedHost } from './requested-host.ts';
import type { Route } from './route.ts';
import { serveRoute } from './serve-route.ts';

/** `routes`: everything that is served. */
export function makeApp(services: Services, routes: readonly Route[]): Express {
  const { config, log } = services.broker;
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.enable('case sensitive routing').enable('strict routing');
  app.set('query parser', false);
  app.set('trust proxy', config.trustedProxies ?? false);
  app.use(refuseForeignHosts(services, routes));
  app.use(guardGit(services.broker.baseUrl));
  const limits = makeRateLimits(config.limitFactor, makeRefusalLog(log));
  const bearers = countRefusedBearers(limits);
  const paths = new Map<string, Route[]>();
  for (const route of routes) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, ':$1');
    paths.set(path, [...(paths.get(path) ?? []), route]);
    const handlers: RequestHandler[] = [serveRoute(route, services, limits, bearers)];
    if (route.anyOrigin) {
      handlers.unshift(allowAnyOrigin);
      app.options(path, answerPreflight);
    }
    if (route.dialect === 'problem') handlers.unshift(echoRequestId);
    app[route.method.toLowerCase() as 'get'](path, ...handlers);
  }
  for (const [path, atPath] of paths) app.all(path, refuseMethod(services, atPath));
  app.use(refuseUnknown(services));
  app.use(refuseBroken(services));
  return app;
}

/**
 * A page on the web may point its own name at 127.0.0.1 and then speak to us as itself (DNS rebinding). A listener on
 * loopback therefore answers only to loopback names and to its public address.
 */
function refuseForeignHosts(services: Services, routes: readonly Route[]): RequestHandler {
  const { config, baseUrl } = services.broker;
  const loopback = ['127.0.0.1', '::1', 'localhost'].includes(config.host);
  const known = new Set(['localhost', '127.0.0.1', '[::1]', new URL(baseUrl).hostname]);
  const dialects = new Map(routes.map((route) => [route.path, route.dialect]));
  return (request, response, next) => {
    const host = requestedHost(request);
    if (host !== undefined && (!loopback || known.has(host))) return next();
    const refusal =
      host === undefined
        ? new Refusal('invalid_request', 'Send one Host header, and a target that is a path.')
        : new Refusal(
            'misdirected_request',
            `This broker does not answer to the name in the Host header. Use ${baseUrl}.`,
          );
    const id = correlationId();
    const dialect = isGitPath(request.path) ? 'line' : dialects.get(request.path);
    send(response, refusalIn(dialect, refusal, { services, correlationId: id }), id);
  };
}

function refuseMethod(services: Services, routes: readonly Route[]): RequestHandler {
  const dialect = routes.find((route) => route.dialect)?.dialect;
  const allowed = routes.flatMap((route) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])).join(', ');
  return (_request, response) => {
    const id = correlationId();
    const refusal = new Refusal('method_not_allowed', `Method not allowed. Allowed: ${allowed}.`, {
      headers: { Allow: allowed },
    });
    send(response, refusalIn(dialect, refusal, { services, correlationId: id }), id);
  };
}

function refuseUnknown(services: Services): RequestHandler {
  return (_request, response) => {
    const id = correlationId();
    const refusal = new Refusal('not_found', 'No such route.');
    send(response, errorReply(refusal, { services, correlationId: id }), id);
  };
}

/** Errors of the router itself, which come before any route. */
function refuseBroken(services: Services): ErrorRequestHandler {
  return (error: Error & { status?: number }, _request, response, next) => {
    if (response.headersSent) return next(error);
    const id = correlationId();
    const refusal =
      error.status && error.status < 500
        ? new Refusal('invalid_request', 'The request could not be parsed.')
        : new Refusal('internal_error', 'Internal error. The operator finds it in the log by the correlation id.');
    if (refusal.code === 'internal_error')
      services.broker.log.error({ err: error, correlationId: id }, 'unforeseen error');
    send(response, errorReply(refusal, { services, correlationId: id }), id);
  };
}
