/** Access requests of agents to their owners (specification, Approvals and access requests). */

import { z } from 'zod';
import type { ReasonCode } from '../../admin/grants/access.ts';
import { askAccess } from '../../admin/grants/ask-access.ts';
import { findRequestOf, type Opened, pollUrlOf } from '../../approvals/access-requests.ts';
import { statusAt } from '../../audit/approval-state.ts';
import { text } from '../../wire/action.ts';
import { Refusal } from '../errors.ts';
import { ActionDenied } from '../governed-answers.ts';
import { stoppedReply } from '../halted.ts';
import { REASON_CODES, REQUEST_STATUSES } from '../owned/access-request.ts';
import { json, type Reply } from '../reply.ts';
import { route } from '../route.ts';
import { sentence } from '../unready.ts';
import { Waiting, waitForNews } from '../waiting.ts';

const PATH = '/v1/access-request';

const Asking = z.strictObject({
  platform: text(64).min(1).describe('platform id'),
  scope: text(256).min(1).optional().describe('the scope that is needed; left out: the platform as a whole'),
  reason: text(2048).optional().describe('the reason of the agent: shown to the person who decides'),
});

const Asked = z
  .object({
    status: z.literal('pending_approval'),
    request_token: z.string(),
    poll_url: z.string().describe('where to poll, with the own agent token'),
    reason_code: z.enum(REASON_CODES),
    message: z.string(),
  })
  .meta({ id: 'AccessRequestPending' });

/** POST /v1/access-request: repeated while it is pending, it returns the same request. */
export const accessRequest = route({
  method: 'POST',
  path: PATH,
  auth: 'agent',
  limit: { name: 'access-requests', perMinute: 20, per: 'agent' },
  capability: 'access_requests.create',
  summary: 'Asks the owners for a scope, or for a platform.',
  body: Asking,
  answers: {
    200: { description: 'The same is pending already.', schema: Asked },
    202: { description: 'An owner has been asked.', schema: Asked },
    403: { description: 'The agent is halted.', schema: ActionDenied, headers: ['Retry-After'] },
  },
  tooLargeIsMalformed: true,
  onMalformed: async (context, { code, detail }) => {
    const stopped = stoppedReply(context, PATH);
    if (stopped) return stopped;
    throw new Refusal(code, detail);
  },
  errors: [
    'invalid_request',
    'scope_not_grantable',
    'not_found',
    'agent_inactive',
    'conflict',
    'rate_limited',
    'too_many_open_requests',
  ],
  handle: async (context) => {
    const { services, who, body } = context;
    const stopped = stoppedReply(context, PATH);
    if (stopped) return stopped;
    const { platform: platformId, scope, reason } = body;
    const asked = await askAccess(services, who, { platformId, scope, reason });
    switch (asked.kind) {
      case 'opened':
        return shown(202, asked.request);
      case 'pending':
        return shown(200, asked.request);
      case 'too_many':
        throw new Refusal(
          'too_many_open_requests',
          `${asked.limit} requests of this agent, with its parent or children, are already waiting for a decision. Wait until some are decided.`,
          { headers: { 'Retry-After': '60' } },
        );
      case 'unknown_platform':
        throw new Refusal('not_found', `The organisation has no platform ${JSON.stringify(platformId)}.`);
      case 'usable':
        throw new Refusal(
          'conflict',
          `No access request is needed: ${sentence(asked.detail)}${scope === undefined ? '' : ' Make the call.'}`,
        );
      case 'refused':
        throw new Refusal('scope_not_grantable', `No owner can grant this: ${sentence(asked.detail)}`);
    }
  },
});

const REASONS: Record<ReasonCode, string> = {
  not_connected: 'no connection of the platform can be used',
  not_granted: 'it is not granted',
  grant_expired: 'the grant has ended',
  needs_consent: 'the connection of the platform needs more consent',
  scope_denied: 'no policy allows it yet',
};

type Request = Extract<Opened, { request: unknown }>['request'];

function shown(status: 200 | 202, request: Request): Reply {
  const what = request.scope === '' ? request.platform_id : `${request.scope} on ${request.platform_id}`;
  return json(status, {
    status: 'pending_approval',
    request_token: request.token,
    poll_url: pollUrlOf(request),
    reason_code: request.reason_code,
    message: `An owner ${status === 202 ? 'has been' : 'was'} asked for ${what}: ${REASONS[request.reason_code]}. Poll poll_url, with ?wait=50, until it is no longer pending; do not ask again.`,
  });
}

const unknown = () => new Refusal('not_found', 'There is no such access request.');

/** GET /v1/access-request/status/{token}: with `?wait=` answers as soon as it is decided, or on timeout. */
export const accessRequestStatus = route({
  method: 'GET',
  path: '/v1/access-request/status/{token}',
  auth: 'agent',
  limit: { name: 'access-request-status', perMinute: 60, per: 'agent' },
  capability: 'access_requests.read',
  summary: 'What became of an access request of this agent.',
  params: { token: z.string().describe('the request_token') },
  query: Waiting,
  answers: {
    200: {
      description: 'Its status, and the note of the person who decided, if there is one.',
      schema: z.object({ status: z.enum(REQUEST_STATUSES), note: z.string().optional() }),
    },
  },
  errors: ['invalid_request', 'forbidden', 'not_found', 'rate_limited'],
  handle: async (context) => {
    const { services, who, params, query } = context;
    const { broker } = services;
    const waitMs = query.wait;
    const read = async (): Promise<Request> => {
      const found = await findRequestOf(broker, who.agent, params.token);
      if (found === undefined) throw unknown();
      if (found === 'another_agents')
        throw new Refusal('forbidden', 'This access request is another agent’s. Poll your own.');
      return found;
    };
    const isSettled = (found: Request, now: number) => statusAt(found, now) !== 'pending';
    const changesAt = ({ expires_at }: Request) => expires_at;
    let found = await read();
    if (waitMs > 0 && !isSettled(found, broker.clock()))
      found = await waitForNews(context, found.id, read, { waitMs, isSettled, changesAt });
    return json(200, {
      status: statusAt(found, broker.clock()),
      ...(found.note !== null && { note: found.note }),
    });
  },
});
