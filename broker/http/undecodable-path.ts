/**
 * Express decodes the parameters of a path before it asks any route, and refuses by itself what cannot be decoded: without the authentication,
 * limits, error dialect and CORS headers of the route that it is for.
 */
import type { Request, RequestHandler } from 'express';
import { correlationId } from '../crypto/ids.ts';
import { type Reply, send } from './reply.ts';
import { isRaw } from './request-guard.ts';

/**
 * Makes U+0000, which names nothing (`nameable`), of each segment that cannot be decoded, so that the route answers as for any name that it
 * does not know. `pageFor` answers browsers, whose pages decode the same path. Below `/git` and `/proxy` the path stays: they read it as it
 * was sent, and decode nothing.
 */
export function nameUndecodable(pageFor: (request: Request) => Reply | undefined): RequestHandler {
  return (request, response, next) => {
    const { path, url } = request;
    if (!path.includes('%') || isRaw(path) || isDecodable(path)) return next();
    const page = pageFor(request);
    if (page) return send(response, page, correlationId());
    const query = url.indexOf('?');
    const named = path.replaceAll(/[^/]+/g, (segment) => (isDecodable(segment) ? segment : '%00'));
    request.url = named + (query < 0 ? '' : url.slice(query));
    next();
  };
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
