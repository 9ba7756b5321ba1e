/** Errors of the authorization queries (specification, Error shapes: Problem; RFC 7807). */
import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import { errorReply } from './envelope.ts';
import type { Refusal } from './errors.ts';
import { lineReply } from './line.ts';
import type { Reply } from './reply.ts';
import type { Context, Route } from './route.ts';

export const PROBLEM_TYPE = 'application/problem+json';

/** `error` and `correlation_id` are extension members (RFC 7807 section 3.2), the same as in the envelope. */
export const Problem = z
  .object({
    title: z.string().describe('what the status is called'),
    status: z.int(),
    detail: z.string().describe('what was wrong and what to do next, for people'),
    error: z.string().describe('a code, for programs'),
    correlation_id: z.uuid().describe('names this request in the log'),
  })
  .meta({ id: 'Problem' });

/** Formats a refusal in the error dialect of its route. */
export function refusalIn(
  dialect: Route['dialect'],
  refusal: Refusal,
  context: Pick<Context, 'correlationId' | 'services'>,
  hint?: Parameters<typeof errorReply>[2],
): Reply {
  if (dialect === 'line') return lineReply(refusal);
  return dialect === 'problem' ? problemReply(refusal, context) : errorReply(refusal, context, hint);
}

/** `type` is omitted and so means `about:blank`: the title is the name of the status. */
function problemReply(refusal: Refusal, { correlationId }: Pick<Context, 'correlationId'>): Reply {
  const { status } = refusal;
  const body: z.infer<typeof Problem> = {
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: refusal.message,
    error: refusal.code,
    correlation_id: correlationId,
  };
  return { status, type: PROBLEM_TYPE, headers: refusal.headers, refusal, body: JSON.stringify(body) };
}
