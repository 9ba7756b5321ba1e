/** The platform's answer that was read before it could be passed on: a 401 to a token that had just been issued. */
import type { ServerResponse } from 'node:http';
import type { OutcomeOf } from '../../audit/outcome.ts';
import { answeredHeaders } from '../../proxy/answer-headers.ts';
import type { Place } from '../../proxy/links.ts';
import { bodyOf } from '../../proxy/stored-result.ts';
import { notesOf } from './headers.ts';

export function writeBufferedAnswer(
  response: ServerResponse,
  { upstreamStatus, dataJson, encoding, contentType, headers = {}, call }: OutcomeOf<'answered'>,
  place: Place,
  unsent: readonly string[],
): void {
  const body = bodyOf(dataJson.toString(), encoding, contentType);
  const type = body.length > 0 && { 'content-type': contentType ?? 'application/json' };
  response.writeHead(upstreamStatus, {
    ...answeredHeaders({ ...headers, ...type }, place),
    'Content-Length': body.length,
    'X-Svc-Audit-Id': call.auditId,
    ...notesOf({ unsent }),
  });
  response.end(body);
}
