/** How long idle connections are kept open. */
import type { Express, RequestHandler } from 'express';

/**
 * Longer than proxies and balancers keep an idle connection (nginx and AWS 60 s, Traefik 90 s, Caddy 2 minutes, Google 10 minutes): if the broker
 * closes one at the moment at which a proxy sends a request, that request becomes a 502, and a POST is not retried. Direct clients get `Keep-Alive:
 * timeout=5` and hold idle connections no longer.
 */
const OF_PROXIES_MS = 620_000;

/** Keeps idle connections of trusted proxies open (`trust proxy` of the application). */
export function keepConnectionsOfProxies(app: Express): RequestHandler {
  const isTrusted: (address: string, hop: number) => boolean = app.get('trust proxy fn');
  return ({ socket }, response, next) => {
    // Node sets its own timeout when the response finishes; this runs later and overrides it. Node resets it with the next request.
    if (isTrusted(socket.remoteAddress ?? '', 0)) response.once('finish', () => socket.setTimeout(OF_PROXIES_MS));
    next();
  };
}
