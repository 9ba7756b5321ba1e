/** What comes before the routes of `/proxy`: browsers, which have no business there, and what HTTP asks beside requests. */
import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import { isOfBrowser } from '../auth/session-cookie.ts';
import { correlationId } from '../crypto/ids.ts';
import { SANDBOX } from '../proxy/answer-headers.ts';
import type { Services } from '../services.ts';
import { Refusal } from './errors.ts';
import { refusalIn } from './problem.ts';
import { refusedReply, thrownRefusal } from './proxy-refusal.ts';
import { askedByLabel } from './proxy-shape.ts';
import { send } from './reply.ts';

/** Whether what is answered there is a platform's, or a refusal of this door. */
export const isProxyPath = (path: string): boolean => path.startsWith('/proxy/');

/** Nothing is asked of anybody for what is refused here. Every answer of the door, refusals too, is put in a sandbox. */
export function guardProxy(services: Services): RequestHandler {
  return (request, response, next) => {
    if (!isProxyPath(request.path)) return next();
    for (const [name, value] of Object.entries(SANDBOX)) response.setHeader(name, value);
    const refusal = refuse(request, services.broker.baseUrl);
    if (refusal === undefined) return next();
    const id = correlationId();
    const reply =
      refusal.code === 'not_implemented'
        ? refusedReply(thrownRefusal(refusal), { correlationId: id }, askedByLabel(request))
        : refusalIn('problem', refusal, { services, correlationId: id });
    send(response, reply, id);
  };
}

function refuse(request: IncomingMessage, baseUrl: string): Refusal | undefined {
  if (isOfBrowser(request, baseUrl))
    return new Refusal('forbidden', 'This address is for programs, not for browsers: open the console instead.');
  const { upgrade, connection = '' } = request.headers;
  // HTTP/2 without TLS is offered by some clients that go on without it; anything else would be another protocol.
  if (upgrade !== undefined && /\bupgrade\b/i.test(connection) && !/^h2c?$/i.test(upgrade))
    return new Refusal('not_implemented', 'Connections that are upgraded (WebSocket, SPDY) are not passed on.');
  return undefined;
}
