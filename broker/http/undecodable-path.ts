/**
 * Express decodes path parameters before it calls a route, and answers those that cannot be decoded with a 400 of its own, without the authentication,
 * rate limits, error format and CORS headers of the route.
 */

import type { Request, RequestHandler } from 'express';
import { correlationId } from '../crypto/ids.ts';
import { isDecodable } from '../policy/endpoint.ts';
import { type Reply, send } from './reply.ts';
import { isRaw } from './request-guard.ts';

/** More segments than any route has. Decoding is not tried segment by segment beyond it, because each failure costs an exception. */
const MAX_SEGMENTS = 20;

/**
 * Replaces each segment that cannot be decoded by an escaped U+0000, which is never a valid name (`nameable`), so that the route answers as for an
 * unknown name. Requests of browsers for pages get `pageFor`, because the pages decode the same path. Paths below `/git` and `/proxy` are not changed:
 * their routes read the raw path.
 */
export function nameUndecodable(pageFor: (request: Request) => Reply | undefined): RequestHandler {
  return (request, response, next) => {
    const { path, url } = request;
    if (!path.includes('%') || isRaw(path) || isDecodable(path)) return next();
    const page = pageFor(request);
    if (page) return send(response, page, correlationId());
    const query = url.indexOf('?');
    const segments = path.split('/');
    const named =
      segments.length > MAX_SEGMENTS
        ? '/%00'
        : segments.map((segment) => (isDecodable(segment) ? segment : '%00')).join('/');
    request.url = named + (query < 0 ? '' : url.slice(query));
    next();
  };
}
