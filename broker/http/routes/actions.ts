import { assertNever, type Outcome } from '../../audit/outcome.ts';
import type { Recorded } from '../../audit/record.ts';
import { act } from '../../calls/act.ts';
import { onceForKey } from '../../calls/idempotency.ts';
import { readableParts, recordMalformed } from '../../calls/malformed.ts';
import { agentFacts, breakersOf, hasStandingParent } from '../../facts/facts.ts';
import { isUndecided } from '../../policy/access.ts';
import type { DenyReason } from '../../policy/facts.ts';
import { haltOf } from '../../policy/halt.ts';
import type { Services } from '../../services.ts';
import { Action } from '../../wire/action.ts';
import { readCaller } from '../caller.ts';
import { ACTION_DOCUMENTED } from '../documented-action.ts';
import { envelope, errorReply, meta, reportHint } from '../envelope.ts';
import { type ErrorCode, Refusal } from '../errors.ts';
import { approveUrl } from '../held-call.ts';
import { json, type Reply } from '../reply.ts';
import { type Context, type MalformedBody, route } from '../route.ts';
import { inSession } from '../session-marker.ts';
import { sentence, unreadyReply } from '../unready.ts';

const CAPABILITY = 'actions.execute';
const MAX_KEY = 255;

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
    'rate_limited',
    'upstream_unreachable',
    'upstream_response_blocked',
    'audit_unavailable',
    'credential_unreadable',
  ],
  recordTooLarge: true,
  onMalformed: (context, problem) => {
    const marked = inSession(context.who, context.request);
    return malformed(marked.ok ? { ...context, who: marked.who } : context, problem);
  },
  handle: async (given) => {
    const read = readCaller(given.request, given.body.caller);
    if (!read.ok) return await malformed(given, { body: given.body, detail: read.error });
    const marked = inSession(given.who, given.request);
    if (!marked.ok) return await malformed(given, { body: given.body, detail: marked.error });
    const context =
      read.caller === given.body.caller && marked.who === given.who
        ? given
        : { ...given, who: marked.who, body: { ...given.body, caller: read.caller } };
    const { services, who, body, correlationId } = context;
    const key = idempotencyKey(context);
    if (key !== undefined && !key.ok) return await malformed(given, { body, detail: key.error });
    const now = services.broker.clock();
    // Whoever is halted, or contained by its parent, is refused, also what was answered before.
    const halted = haltOf(agentFacts(who.agent), breakersOf(who.agent, now), now) !== undefined;
    if (key === undefined || halted || !hasStandingParent(who.agent, now))
      return answer(context, await act(services, who, body, { correlationId, now }));
    let first: Reply | undefined;
    const result = await onceForKey(services, who, key.value, body, async (auditId) => {
      const outcome = await act(services, who, body, { correlationId, auditId, now });
      first = answer(context, outcome);
      return { status: first.status, body: String(first.body), effect: hadEffect(body, outcome.value) };
    });
    if (result.kind === 'refused')
      throw new Refusal(result.code, result.detail, {
        // As every 409 of this route says (specification, Governed call, 409).
        extra: { platform: body.platform, consent_requested: false, message: result.detail, audit_id: result.auditId },
        ...(result.code === 'idempotency_in_progress' && { headers: { 'Retry-After': '2' } }),
      });
    if (result.kind === 'first') return first!;
    return { status: result.status, body: result.body, headers: { 'Idempotency-Replayed': 'true' } };
  },
});

/** Whether the platform may have acted on the call, or a person may decide on it. */
function hadEffect({ method }: Action, outcome: Outcome): boolean {
  if (method === 'GET') return outcome.kind === 'held';
  if (outcome.kind === 'unreachable') return outcome.sent;
  return ['answered', 'held', 'response_blocked'].includes(outcome.kind);
}

type ActionContext = Context<'agent', Action>;

function idempotencyKey({ request }: Pick<ActionContext, 'request'>) {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && key.length <= MAX_KEY && /^[\x21-\x7e]+$/.test(key))
    return { ok: true as const, value: key };
  const error = `Idempotency-Key: 1 to ${MAX_KEY} visible ASCII characters, one header.`;
  return { ok: false as const, error };
}

/** A request that is no call: recorded, counted towards the breaker, and answered 400; of a halted agent answered 403. */
async function malformed(
  context: Pick<ActionContext, 'services' | 'who' | 'correlationId'>,
  problem: Pick<MalformedBody, 'body' | 'detail'> & Partial<Pick<MalformedBody, 'code'>>,
): Promise<Reply> {
  const { services, who, correlationId } = context;
  const recorded = await recordMalformed(services, who, { ...problem, correlationId });
  if (recorded.value.kind !== 'invalid') {
    const body = { platform: '', scope: '', method: 'GET' as const, ...readableParts(problem.body) };
    return answer({ ...context, body }, recorded);
  }
  const { auditId: audit_id, code, detail } = recorded.value;
  return errorReply(new Refusal(code, detail, { extra: { audit_id } }), context, {
    code,
    severity: 'warning',
    endpoint: '/v1/actions',
  });
}

type Answered = Pick<ActionContext, 'services' | 'correlationId'> & {
  body: Pick<Action, 'platform' | 'scope' | 'method'>;
};

/** From a recorded outcome to the wire. Nothing else can be answered: an unrecorded outcome does not compile. */
function answer(context: Answered, { value: outcome }: Recorded<Outcome>): Reply {
  const { services, body, correlationId } = context;
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
      return envelope(200, outcome.dataJson, meta(services, CAPABILITY, notes, [receiptLink(audit_id)]));
    }
    case 'held':
      return json(202, {
        status: 'pending_approval',
        approval_id: outcome.approvalId,
        approval_url: approveUrl(services.broker, outcome.approvalId),
        message: `Held until a person decides: ${outcome.reason}. An owner decides at ${approveUrl(services.broker, outcome.approvalId)}. Do not send it again; poll the approval instead.`,
        expires_at: new Date(outcome.expiresAt).toISOString(),
        _meta: meta(services, CAPABILITY, { audit_id, ...outcome.notes }, [
          { capability: 'approvals.read', endpoint: `/v1/approvals/${outcome.approvalId}` },
          receiptLink(audit_id),
        ]),
      });
    case 'denied':
      return denied(services, context, outcome);
    case 'invalid':
      return refused(outcome.code, sentence(outcome.detail), { audit_id });
    case 'inactive':
    case 'reauth_needed':
    case 'needs_consent':
    case 'not_connected':
    case 'consent_required':
      return unreadyReply(outcome, body, common, services.broker.baseUrl);
    case 'credential_unreadable':
      return refused(
        'credential_unreadable',
        `The stored credential of ${platform} cannot be opened, so nothing was sent. An owner has to connect it again.`,
        { audit_id },
      );
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
    case 'not_as_approved':
      return refused('conflict', sentence(outcome.detail), { audit_id });
    default:
      return assertNever(outcome);
  }
}

const receiptLink = (auditId: string) => ({ capability: 'audit.receipt', endpoint: `/v1/audit/${auditId}/receipt` });

const ME = { capability: 'agents.me', endpoint: '/v1/agents/me' };
const ACCESS_REQUEST = { capability: 'access_requests.create', endpoint: '/v1/access-request' };
/** Refusals that an owner can lift by granting more, or by deciding at all (specification, Errors 5; Access request). */
const MAY_BE_REQUESTED = new Set<DenyReason>(['scope_not_granted', 'no_permission_record', 'grant_expired']);
const mayBeRequested = (verdict: Denied['verdict']) => MAY_BE_REQUESTED.has(verdict.reason) || isUndecided(verdict);

type Denied = Extract<Outcome, { kind: 'denied' }>;

/** ActionDenied of the specification. */
function denied(services: Services, { correlationId, body }: Answered, { verdict, auditId }: Denied): Reply {
  const halted = verdict.halt !== undefined;
  const { halt, violating, reason } = verdict;
  const retryAfter = halt?.retry_after_seconds ?? verdict.retryAfterSeconds;
  const error = halted ? 'agent_halted' : 'Permission denied';
  const next = [...(halted ? [ME] : mayBeRequested(verdict) ? [ACCESS_REQUEST] : []), receiptLink(auditId)];
  return {
    ...json(403, {
      error,
      reason,
      detail: sentence(verdict.detail),
      correlation_id: correlationId,
      audit_id: auditId,
      ...(halt && { halt }),
      // Its other platforms can be used: it has to be clear which one is meant.
      ...(!halt && reason === 'circuit_breaker_open' && { platform: body.platform }),
      ...(violating && { violating }),
      ...(reason === 'repo_not_allowed' && { constraint: { kind: 'repos', reason, violating: violating ?? [] } }),
      report_hint: reportHint(
        { code: reason, severity: 'warning', endpoint: '/v1/actions' },
        { services, correlationId },
      ),
      _meta: meta(services, CAPABILITY, { audit_id: auditId }, next),
    }),
    ...(retryAfter !== undefined && { headers: { 'Retry-After': String(retryAfter) } }),
  };
}
