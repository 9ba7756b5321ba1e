/** How long connections are kept that wait for their next request. */
import type { Express, RequestHandler } from 'express';

/**
 * Longer than proxies and balancers keep a connection that they do not use (nginx and AWS 60 s, Traefik 90 s, Caddy 2 minutes, Google
 * 10 minutes): on one that the broker closes at the moment at which they send a request, that request is a 502, and a POST is not
 * repeated. Clients that connect themselves are told by `Keep-Alive: timeout=5`, and hold what they do not need no longer.
 */
const OF_PROXIES_MS = 620_000;

/** Keeps the connections of trusted proxies (`trust proxy` of the application). */
export function keepConnectionsOfProxies(app: Express): RequestHandler {
  const isTrusted: (address: string, hop: number) => boolean = app.get('trust proxy fn');
  return ({ socket }, response, next) => {
    // Node sets its own time as the response finishes, and this comes after it; with the next request it takes it back.
    if (isTrusted(socket.remoteAddress ?? '', 0)) response.once('finish', () => socket.setTimeout(OF_PROXIES_MS));
    next();
  };
}
