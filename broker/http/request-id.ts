/** `X-Request-ID` (AuthZEN Authorization API 1.0, Request Identification; TRQP 2.0, HTTPS binding). */
import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Returns the client's request id with every answer, refusals included, unchanged. Ids with other characters than ASCII are dropped, because Node
 * would write them as other bytes than it read.
 */
export function echoRequestId(request: IncomingMessage, response: ServerResponse): void {
  const id = request.headers['x-request-id'];
  if (id !== undefined && /^[\t\x20-\x7e]*$/.test(String(id))) response.setHeader('X-Request-ID', id);
}
