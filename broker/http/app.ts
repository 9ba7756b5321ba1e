/** The Express application: hardening, bodies, routes, and unknown addresses. */

import type { ServerResponse } from 'node:http';
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler } from 'express';
import { correlationId } from '../crypto/ids.ts';
import { makeRefusalLog } from '../log/refusals.ts';
import type { Services } from '../services.ts';
import { errorReply } from './envelope.ts';
import { Refusal } from './errors.ts';
import { allowMcpOrigins } from './mcp/origins.ts';
import { noSuchPage } from './pages/no-such-page.ts';
import { refusalIn } from './problem.ts';
import { makeRateLimits } from './rate-limits.ts';
import { countRefusedBearers } from './refused-bearers.ts';
import { type Reply, send } from './reply.ts';
import { guardGit, guardProxy, guardRequests } from './request-guard.ts';
import type { Route } from './route.ts';
import { serveRoute } from './serve-route.ts';
import { nameUndecodable } from './undecodable-path.ts';

/** Builds the application. `routes`: all routes to serve. */
export function makeApp(services: Services, routes: readonly Route[]): Express {
  const { config, log, rateCounts } = services.broker;
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.enable('case sensitive routing').enable('strict routing');
  app.set('query parser', false);
  app.set('trust proxy', config.trustedProxies ?? false);
  if (config.trustedProxies !== undefined) app.use(keepConnectionsOfProxies(app));
  app.use(guardRequests(services, routes));
  app.use(guardGit(services.broker.baseUrl));
  app.use(guardProxy(services));
  app.use(nameUndecodable(pageFor));
  app.use(allowMcpOrigins(services));
  const limits = makeRateLimits(config.limitFactor, rateCounts, makeRefusalLog(log));
  const bearers = countRefusedBearers(limits, services.broker.baseUrl);
  const handlerOf = (route: Route): RequestHandler => {
    const serve = serveRoute(route, services, limits, bearers);
    if (!route.anyOrigin) return serve;
    return (request, response) => {
      allowAnyOrigin(response);
      return serve(request, response);
    };
  };
  /** Handles methods that no route at a path declares. */
  const otherMethods = (atPath: readonly Route[]): RequestHandler => {
    const any = atPath.find((route) => route.anyMethod);
    return any ? serveRoute(any, services, limits, bearers) : refuseMethod(services, atPath);
  };
  const paths = Map.groupBy(routes, (route) => String(pathOf(route)));
  const isFixed = ({ path, takesRest }: Route) => !takesRest && !path.includes('{');
  app.use(
    atFixedPaths(
      [...paths.values()].filter(([route]) => route && isFixed(route)),
      handlerOf,
      otherMethods,
    ),
  );
  for (const route of routes.filter((one) => !isFixed(one))) {
    const path = pathOf(route);
    if (route.anyOrigin) app.options(path, answerPreflight);
    app[route.method.toLowerCase() as 'get'](path, handlerOf(route));
  }
  // Not `app.all`, which adds a layer for each of the 35 methods: that took half of the time needed to set up the routes.
  for (const atPath of paths.values()) {
    const [first] = atPath;
    if (first && !isFixed(first)) app.route(pathOf(first)).all(otherMethods(atPath));
  }
  app.use(refuseUnknown(services, new Set(paths.keys())));
  app.use(refuseBroken(services));
  return app;
}

/**
 * Serves routes without path parameters, which are most, by a map lookup, where Express would match one path after the other. Each list holds the
 * routes of one path.
 */
function atFixedPaths(
  lists: readonly (readonly Route[])[],
  handlerOf: (route: Route) => RequestHandler,
  otherMethods: (atPath: readonly Route[]) => RequestHandler,
): RequestHandler {
  const byPath = new Map(
    lists.map((atPath) => {
      const byMethod = new Map<string, RequestHandler>();
      for (const route of atPath) {
        const handler = handlerOf(route);
        byMethod.set(route.method, handler);
        if (route.method === 'GET') byMethod.set('HEAD', handler);
        if (route.anyOrigin) byMethod.set('OPTIONS', answerPreflight);
      }
      return [atPath[0]?.path ?? '', { byMethod, others: otherMethods(atPath) }];
    }),
  );
  return (request, response, next) => {
    const found = byPath.get(request.path);
    if (!found) return next();
    return (found.byMethod.get(request.method) ?? found.others)(request, response, next);
  };
}

type RouterPath = string | string[] | RegExp;

/**
 * Converts a path to the syntax of Express (path-to-regexp): `{name}` matches one segment; with `takesRest` the last parameter matches any number of
 * them.
 */
function pathOf({ path, takesRest }: Route): RouterPath {
  // Express decodes parameters, and itself refuses those that it cannot decode; a pattern without parameters avoids that.
  if (takesRest === 'as_sent') return new RegExp(`^${path.slice(0, path.indexOf('{'))}.`, 's');
  const written = path.replaceAll(/\{(\w+)\}/g, ':$1');
  if (!takesRest) return written;
  const [base, rest = ''] = [written.slice(0, written.lastIndexOf('/')), written.slice(written.lastIndexOf(':') + 1)];
  return [base, `${base}/`, `${base}/*${rest}`];
}

function refuseMethod(services: Services, routes: readonly Route[]): RequestHandler {
  const dialect = routes.find((route) => route.dialect)?.dialect;
  const allowed = routes
    .flatMap(({ method, refusesHead }) => (method === 'GET' && !refusesHead ? ['GET', 'HEAD'] : [method]))
    .join(', ');
  return (_request, response) => {
    const id = correlationId();
    const refusal = new Refusal('method_not_allowed', `Method not allowed. Allowed: ${allowed}.`, {
      headers: { Allow: allowed },
    });
    send(response, refusalIn(dialect, refusal, { services, correlationId: id }), id);
  };
}

/** Addresses that people type, or follow a link to. */
const PAGES = /^\/(?<section>console|docs|approve|me)(?:\/|$)/;

/** Returns the 404 page for a browser; undefined for a program, which gets the error envelope as everywhere. */
function pageFor({ path, headers }: Request): Reply | undefined {
  const section = PAGES.exec(path)?.groups?.section;
  if (section === undefined || !headers.accept?.includes('text/html')) return undefined;
  return noSuchPage(section === 'docs' ? 'docs' : 'console');
}

/**
 * Answers unknown paths with 404. `served`: the paths of all routes. For an address such as `/mcp/`, which other servers serve with a trailing slash,
 * the path without the slash is looked up for a hint.
 */
function refuseUnknown(services: Services, served: ReadonlySet<string>): RequestHandler {
  return (request, response) => {
    const id = correlationId();
    const page = pageFor(request);
    if (page) return send(response, page, id);
    const { path } = request;
    const meant = path.endsWith('/') && served.has(path.slice(0, -1));
    const hint = meant ? ` Leave out the slash at the end: ${path.slice(0, -1)}.` : '';
    const refusal = new Refusal('not_found', `No such route.${hint}`);
    send(response, errorReply(refusal, { services, correlationId: id }), id);
  };
}

/** Handles unexpected errors outside of any route. */
function refuseBroken(services: Services): ErrorRequestHandler {
  return (error: unknown, _request, response, next) => {
    if (response.headersSent) return next(error);
    const id = correlationId();
    services.broker.log.error({ err: error, correlationId: id }, 'unforeseen error');
    const refusal = new Refusal(
      'internal_error',
      'Internal error. The operator finds it in the log by the correlation id.',
    );
    send(response, errorReply(refusal, { services, correlationId: id }), id);
  };
}

/**
 * Longer than proxies and balancers keep an idle connection (nginx and AWS 60 s, Traefik 90 s, Caddy 2 minutes, Google 10 minutes): if the broker
 * closes one at the moment at which a proxy sends a request, that request becomes a 502, and a POST is not retried. Direct clients get `Keep-Alive:
 * timeout=5` and hold idle connections no longer.
 */
const PROXY_TIMEOUT_MS = 620_000;

/** Keeps idle connections of trusted proxies open (`trust proxy` of the application). */
function keepConnectionsOfProxies(app: Express): RequestHandler {
  const isTrusted: (address: string, hop: number) => boolean = app.get('trust proxy fn');
  return ({ socket }, response, next) => {
    // Node sets its own timeout when the response finishes; this runs later and overrides it. Node resets it with the next request.
    if (isTrusted(socket.remoteAddress ?? '', 0)) response.once('finish', () => socket.setTimeout(PROXY_TIMEOUT_MS));
    next();
  };
}

/** Adds the permission to every answer, refusals included. Never with credentials: public documents need none. */
function allowAnyOrigin(response: ServerResponse): void {
  response.setHeader('Access-Control-Allow-Origin', '*');
}

/** Answers a preflight request. */
const answerPreflight: RequestHandler = (_request, response) => {
  response.writeHead(204, {
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': 'GET, HEAD',
    'Access-Control-Allow-Headers': '*',
    'Access-Control-Max-Age': '86400',
    'Cache-Control': 'no-store',
  });
  response.end();
};
