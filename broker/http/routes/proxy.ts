/** The entry point for software that was not written for the broker: a platform's own API below /proxy (docs/unmodified.md). */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import { ofConnection } from '../../policy/asked-platform.ts';
import { readRawTarget } from '../../proxy/raw-target.ts';
import { ActionDenied } from '../governed-answers.ts';
import { Problem } from '../problem.ts';
import { serveProxy } from '../proxy/entry-point.ts';
import { formatEarlyRefusal } from '../proxy/shape.ts';
import { type Context, route } from '../route.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const DESCRIPTION =
  'Takes a request as the platform itself would, and answers with its own answer, streamed both ways. The scope is found by the endpoint. Path, query, headers and body are judged as they are sent; JSON and forms up to 1 MiB are read, in parts too, of any other body rules know nothing. A call that a person has to approve waits `X-Svc-Wait` seconds (25) and is then refused with the link; the same request sent again joins it. Refusals have the form of the platform’s own errors where its manifest knows it.';

/** Members of a refusal, beside those of every problem; for a held call also where it is decided. */
const Refused = Problem.extend({
  audit_id: z.guid().optional(),
  reason: ActionDenied.shape.reason.optional(),
  violating: ActionDenied.shape.violating,
  constraint: ActionDenied.shape.constraint,
  limit: ActionDenied.shape.limit,
})
  .catchall(z.unknown())
  .meta({ id: 'RefusedProblem' });

/** After the call was decided, the answer is streamed. */
const handle = async (context: Context<'raw'>) => ({
  status: 200,
  handOver: (response: Parameters<typeof serveProxy>[1]) => void serveProxy(context, response),
});

const connectionOf = ({ url }: IncomingMessage): string => {
  const target = readRawTarget(url ?? '');
  return target === undefined ? '' : ofConnection(target.connection);
};

const summaryOf = (method: (typeof METHODS)[number]): string =>
  `Send a ${method} to a connected platform, as its own clients do.`;

export const proxyRoutes = METHODS.map((method) =>
  route({
    method,
    path: '/proxy/{connection}/{path}',
    takesRest: 'as_sent',
    auth: 'raw',
    factsOf: connectionOf,
    dialect: 'problem',
    formatRefusal: formatEarlyRefusal,
    anyMethod: true,
    limit: { name: 'proxy', perMinute: 1200, per: 'family' },
    capability: `proxy.${method.toLowerCase()}`,
    summary: summaryOf(method),
    description: DESCRIPTION,
    params: {
      connection: z.string().describe('label or id of a connection that the agent has a grant on'),
      path: z.string().describe('path of the platform’s API, below its base URL, slashes included'),
    },
    headers: {
      'X-Svc-Authorization': {
        description: '`Bearer` and the token of the agent, unless it is in the header of the platform’s own key',
      },
      'X-Svc-Wait': { description: 'how many seconds the client can wait for a person, 0 to 120', example: '25' },
      'X-Svc-Base-Url': {
        description: 'the URL at which the client reaches the connection, where a server in between adds the token',
      },
      'X-Svc-Reason': { description: 'why, in the words of the agent: shown to the approver and recorded' },
    },
    answers: {
      200: {
        description: 'The answer of the platform, with its status.',
        type: '*/*',
        headers: ['X-Svc-Audit-Id'],
      },
      403: {
        description: 'Denied, or a person has to approve it first.',
        type: 'application/problem+json',
        schema: Refused,
      },
      422: {
        description: 'It was made, or may have been, and its answer is not given. Do not send it again.',
        type: 'application/problem+json',
        schema: Refused,
      },
    },
    errors: [
      'invalid_request',
      'forbidden',
      'not_found',
      'payload_too_large',
      'rate_limited',
      'too_many_calls',
      'not_implemented',
      'upstream_unreachable',
      'upstream_response_blocked',
      'audit_unavailable',
      'store_restored',
      'credential_unreadable',
    ],
    handle: handle as never,
  }),
);
