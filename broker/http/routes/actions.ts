import type { WholeOutcome } from '../../audit/outcome.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { holderOf } from '../../calls/call.ts';
import { perform, type WholeCallRequest } from '../../calls/perform.ts';
import type { CallLease } from '../../egress/call-lease.ts';
import { Action } from '../../wire/action.ts';
import { traceparentOf } from '../authenticate.ts';
import { Refusal } from '../errors.ts';
import { ACTION_DOCUMENTED } from '../openapi/documented-action.ts';
import { CAPABILITY, outcomeReply, type ReplyContext } from '../outcome-reply.ts';
import type { Reply } from '../reply.ts';
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

/** `lease`: holds the memory of the parsed body. */
type CallContext = ReplyContext & { who: AgentPrincipal; lease?: CallLease | undefined };
/** Converts an outcome into the answer of the entry point; the answer is also stored for the Idempotency-Key. */
type Write<Answer extends Reply> = (context: ReplyContext, outcome: WholeOutcome) => Answer;

/** Performs a governed call for HTTP, or for a tool of `/mcp`. Throws Refusal when the Idempotency-Key was used for another request, or the outcome of its call is not known, or not yet. */
export async function performCall<Answer extends Reply>(
  { services, who, correlationId, lease: taken }: CallContext,
  request: WholeCallRequest,
  write: Write<Answer>,
): Promise<Answer | Reply> {
  const lease = taken ?? services.budget.lease(holderOf(who));
  try {
    const reply = await performOnce({ services, who, correlationId }, { ...request, lease }, write);
    return { ...reply, lease };
  } catch (error) {
    lease.release();
    throw error;
  }
}

async function performOnce<Answer extends Reply>(
  { services, who, correlationId }: CallContext,
  request: WholeCallRequest,
  write: Write<Answer>,
): Promise<Answer | Reply> {
  const done = await perform(services, who, request, (outcome) => write({ services, correlationId }, outcome));
  switch (done.kind) {
    case 'answered':
      return done.answer;
    case 'again':
      return { ...done.response, headers: { 'Idempotency-Replayed': 'true' } };
    case 'key_refused': {
      const { code, detail, auditId: audit_id } = done;
      const platform = request.asked.ok ? request.asked.action.platform : '';
      throw new Refusal(code, detail, {
        // Members of every 409 of this route (specification, Governed call, 409).
        extra: { platform, consent_requested: false, message: detail, audit_id },
        ...(code === 'idempotency_in_progress' && { headers: { 'Retry-After': '2' } }),
      });
    }
  }
}
