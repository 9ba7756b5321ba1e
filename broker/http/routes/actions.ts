import { Action } from '../../wire/action.ts';
import { traceparentOf } from '../authenticate.ts';
import { ACTION_DOCUMENTED } from '../documented-action.ts';
import { CAPABILITY, outcomeReply } from '../outcome-reply.ts';
import { performCall } from '../perform-call.ts';
import { type Context, route } from '../route.ts';

/** POST /v1/actions (specification, Governed call). */
export const actions = route({
  method: 'POST',
  path: '/v1/actions',
  auth: 'agent',
  limit: { name: 'actions', perMinute: 600, per: 'family' },
  capability: CAPABILITY,
  summary: 'Make a governed call to a connected platform.',
  body: Action,
  nulAllowedIn: ['data'],
  ...ACTION_DOCUMENTED,
  errors: [
    'invalid_request',
    'invalid_endpoint',
    'invalid_headers',
    'agent_inactive',
    'idempotency_key_reused',
    'idempotency_in_progress',
    'idempotency_outcome_unknown',
    'too_many_pending_approvals',
    'too_many_calls',
    'rate_limited',
    'upstream_unreachable',
    'upstream_response_blocked',
    'audit_unavailable',
    'credential_unreadable',
    'store_restored',
  ],
  tooLargeIsMalformed: true,
  isUnreadWhenStopped: true,
  onMalformed: (context, problem) =>
    performCall(context, { ...sent(context), asked: { ok: false, ...problem } }, outcomeReply),
  handle: (context) =>
    performCall(context, { ...sent(context), asked: { ok: true, action: context.body } }, outcomeReply),
});

/** Extracts what a call uses of its request's headers. */
const sent = ({
  correlationId,
  request: { headers, headersDistinct },
}: Pick<Context, 'correlationId' | 'request'>) => ({
  correlationId,
  idempotencyKey: headers['idempotency-key'],
  traceparent: traceparentOf(headers),
  sessionMarker: headers['x-svc-session'],
  caller: headers['x-svc-caller'] === undefined ? undefined : headersDistinct['x-svc-caller'],
});
