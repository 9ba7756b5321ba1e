/** `X-Request-ID` (AuthZEN Authorization API 1.0, Request Identification; TRQP 2.0, HTTPS binding). */
import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * What the client calls its request comes back with the answer, refusals too, as it was sent. Node would write other
 * characters than ASCII as other bytes than it read: such a name does not come back at all.
 */
export function echoRequestId(request: IncomingMessage, response: ServerResponse): void {
  const id = request.headers['x-request-id'];
  if (id !== undefined && /^[\t\x20-\x7e]*$/.test(String(id))) response.setHeader('X-Request-ID', id);
}
