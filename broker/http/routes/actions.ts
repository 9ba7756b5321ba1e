import { act } from '../../calls/act.ts';
import { countFailure } from '../../calls/breakers.ts';
import type { Governor } from '../../calls/governor.ts';
import { onceForKey } from '../../calls/idempotency.ts';
import { assertNever, type Outcome } from '../../calls/outcome.ts';
import type { Recorded } from '../../calls/record.ts';
import { Action } from '../../wire/action.ts';
import { envelope, errorReply, meta, reportHint } from '../envelope.ts';
import { type ErrorCode, Refusal } from '../errors.ts';
import { json, type Reply } from '../reply.ts';
import { type Context, route } from '../route.ts';

const CAPABILITY = 'actions.execute';
const PER_MINUTE = 600;
const MAX_KEY = 255;

/** POST /v1/actions (specification, Governed call). */
export const actions = route({
  method: 'POST',
  path: '/v1/actions',
  auth: 'agent',
  limit: { name: 'actions', perMinute: PER_MINUTE, per: 'agent' },
  capability: CAPABILITY,
  summary: 'Make a governed call to a connected platform.',
  body: Action,
  nulAllowedIn: ['data'],
  answers: { 200: 'The upstream answered.', 202: 'Held for a person to approve.' },
  errors: [
    'invalid_request',
    'invalid_endpoint',
    'invalid_headers',
    'rate_limited',
    'upstream_unreachable',
    'audit_unavailable',
  ],
  onMalformed: ({ governor, who }) => countFailure(governor.broker, who, 'breaker_api_error', ''),
  handle: async (context) => {
    const { governor, who, body, correlationId } = context;
    const key = idempotencyKey(context);
    if (key === undefined) return answer(context, await act(governor, who, body, correlationId));
    const result = await onceForKey(governor, who, key, body, async (auditId) => {
      const outcome = await act(governor, who, body, correlationId, auditId);
      const reply = answer(context, outcome);
      return { status: reply.status, body: String(reply.body), effect: hadEffect(outcome) };
    });
    if (result.kind === 'refused')
      throw new Refusal(result.code, result.detail, {
        extra: { audit_id: result.auditId },
        ...(result.code === 'idempotency_in_progress' && { headers: { 'Retry-After': '2' } }),
      });
    if (result.kind === 'first') return { status: result.answer.status, body: result.answer.body };
    return { status: result.status, body: result.body, headers: { 'Idempotency-Replayed': 'true' } };
  },
});

/** Whether the platform may have seen the call, or a person may decide on it. */
function hadEffect(outcome: Outcome): boolean {
  if (outcome.kind === 'unreachable') return outcome.sent;
  return ['answered', 'held', 'response_blocked'].includes(outcome.kind);
}

type ActionContext = Context<'agent', Action>;

function idempotencyKey({ request }: Pick<ActionContext, 'request'>): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || key.length > MAX_KEY || !/^[\x21-\x7e]+$/.test(key))
    throw new Refusal('invalid_request', `Idempotency-Key: 1 to ${MAX_KEY} visible ASCII characters, one header.`);
  return key;
}

/** From a recorded outcome to the wire. Nothing else can be answered: an unrecorded outcome does not compile. */
function answer(context: ActionContext, outcome: Recorded<Outcome>): Reply {
  const { governor, body, correlationId } = context;
  const { platform } = body;
  const audit_id = outcome.auditId;
  const common = { platform, correlation_id: correlationId, audit_id };
  const refused = (code: ErrorCode, detail: string, extra: Record<string, unknown>, headers = {}): Reply =>
    errorReply(new Refusal(code, detail, { extra, headers }), context, {
      code,
      severity: 'warning',
      endpoint: '/v1/actions',
    });
  switch (outcome.kind) {
    case 'answered': {
      const notes = { audit_id, upstream_status: outcome.upstreamStatus, ...outcome.notes };
      return envelope(200, outcome.dataJson, meta(governor, CAPABILITY, notes, [receiptLink(audit_id)]));
    }
    case 'held':
      return json(202, {
        status: 'pending_approval',
        approval_id: outcome.approvalId,
        message: `Held until a person decides: ${outcome.reason}. Do not send it again; poll the approval instead.`,
        expires_at: new Date(outcome.expiresAt).toISOString(),
        _meta: meta(governor, CAPABILITY, { audit_id, ...outcome.notes }, [receiptLink(audit_id)]),
      });
    case 'denied':
      return denied(governor, context, outcome);
    case 'invalid':
      return refused(outcome.code, sentence(outcome.detail), { audit_id });
    case 'inactive':
      return json(409, {
        error: 'agent_inactive',
        consent_requested: false,
        message: `${sentence(outcome.detail)} An owner has to finish setting it up.`,
        ...common,
      });
    case 'reauth_needed':
      return json(409, {
        error: 'platform_reauth_needed',
        consent_requested: false,
        message: `The platform refused the stored credential of ${platform}. An owner has to connect it again; repeating the call does not help.`,
        ...common,
      });
    case 'not_connected':
      return json(412, {
        error: 'platform_not_connected',
        message: `No connection of ${platform} can be used. An owner has to connect it.`,
        ...common,
      });
    case 'consent_required':
      return json(412, {
        error: 'consent_required',
        reason: outcome.reason,
        message:
          outcome.reason === 'no_caller'
            ? `${platform} holds one token per person: say for whom the call is made, in "caller" or the header X-Svc-Caller.`
            : `This person has not connected ${platform}.`,
        ...common,
      });
    case 'too_many_pending':
      return refused(
        'too_many_pending_approvals',
        `${outcome.limit} calls of this agent wait for a decision already. Wait until some are decided.`,
        { audit_id },
        { 'Retry-After': '60' },
      );
    case 'unreachable': {
      const unknown = outcome.sent && body.method !== 'GET';
      return refused(
        'upstream_unreachable',
        `${outcome.detail}${unknown ? ' The call may have been made: look at the platform before you repeat it.' : ''}`,
        { audit_id, code: outcome.code, outcome: outcome.sent ? 'unknown' : 'not_sent' },
      );
    }
    case 'response_blocked':
      return refused('upstream_response_blocked', sentence(outcome.detail), { audit_id });
    default:
      return assertNever(outcome);
  }
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

const receiptLink = (auditId: string) => ({ capability: 'audit.receipt', endpoint: `/v1/audit/${auditId}/receipt` });

/** ActionDenied of the specification. */
function denied(
  governor: Governor,
  { correlationId }: ActionContext,
  { verdict, auditId }: Extract<Outcome, { kind: 'denied' }>,
): Reply {
  const halted = verdict.halt !== undefined;
  const { halt, violating, reason } = verdict;
  const error = halted ? 'agent_halted' : 'Permission denied';
  return {
    ...json(403, {
      error,
      reason,
      detail: sentence(verdict.detail),
      correlation_id: correlationId,
      audit_id: auditId,
      ...(halt && { halt }),
      ...(violating && { violating }),
      ...(reason === 'repo_not_allowed' && { constraint: { kind: 'repos', reason, violating: violating ?? [] } }),
      report_hint: reportHint(
        { code: reason, severity: 'warning', endpoint: '/v1/actions' },
        { governor, correlationId },
      ),
      _meta: meta(governor, CAPABILITY, { audit_id: auditId }, [receiptLink(auditId)]),
    }),
    ...(halt?.retry_after_seconds != null && { headers: { 'Retry-After': String(halt.retry_after_seconds) } }),
  };
}
