/** Converts the outcome of a call into an answer. */
import { answerNotes } from '../audit/answer-notes.ts';
import { platformEffectOf, reachOf } from '../audit/effect.ts';
import { assertNever, BLOCKED_DETAILS, type OutcomeOf, type WholeOutcome } from '../audit/outcome.ts';
import { isUndecided } from '../policy/access.ts';
import type { DenyReason } from '../policy/facts.ts';
import type { ReportedLimit } from '../policy/limit.ts';
import { plainSentence } from '../sentences/part.ts';
import { envelope, errorReply, meta, reportHint } from './envelope.ts';
import { type ErrorCode, Refusal } from './errors.ts';
import { approveUrl } from './held-call.ts';
import { json, type Reply } from './reply.ts';
import type { Context } from './route.ts';
import { sentence, unreadyReply } from './unready.ts';

export const CAPABILITY = 'actions.execute';

export type ReplyContext = Pick<Context, 'services' | 'correlationId'>;

/** Returns the answer of `POST /v1/actions` for an outcome (specification, Governed call). */
export function outcomeReply(context: ReplyContext, outcome: WholeOutcome): Reply {
  const { services, correlationId } = context;
  const { auditId: audit_id, asked, organisationId } = outcome.call;
  const { platform = '', scope = '' } = asked;
  const common = { platform, correlation_id: correlationId, audit_id };
  const refused = (code: ErrorCode, detail: string, extra: Record<string, unknown>, headers = {}): Reply =>
    errorReply(new Refusal(code, detail, { extra, headers }), context, {
      code,
      severity: 'warning',
      endpoint: '/v1/actions',
    });
  switch (outcome.kind) {
    case 'answered':
      return envelope(
        200,
        outcome.dataJson,
        meta(services, organisationId, CAPABILITY, answeredNotes(outcome), [receiptLink(audit_id)]),
      );
    case 'held':
      return json(202, {
        status: 'pending_approval',
        approval_id: outcome.approvalId,
        approval_url: approveUrl(services.broker, outcome.approvalId),
        message: `Held until a person decides: ${outcome.call.decided?.verdict.detail}. An owner decides at ${approveUrl(services.broker, outcome.approvalId)}. Do not send it again; poll the approval instead.`,
        sentence: plainSentence(outcome.sentence),
        expires_at: new Date(outcome.expiresAt).toISOString(),
        ...limitOfHold(outcome),
        _meta: meta(services, organisationId, CAPABILITY, { audit_id, ...answerNotes(outcome) }, [
          { capability: 'approvals.read', endpoint: `/v1/approvals/${outcome.approvalId}` },
          receiptLink(audit_id),
        ]),
      });
    case 'denied':
      return denied(context, outcome);
    case 'invalid':
      return refused(outcome.code, sentence(outcome.detail), { audit_id });
    case 'inactive':
    case 'reauth_needed':
    case 'needs_consent':
    case 'not_connected':
    case 'consent_required':
      return unreadyReply(outcome, { platform, scope }, common, services.broker.baseUrl);
    case 'credential_unreadable':
      return refused(
        'credential_unreadable',
        `The stored credential of ${platform} cannot be opened, so nothing was sent. An owner has to connect it again.`,
        { audit_id },
      );
    case 'too_many_pending':
      return refused(
        'too_many_pending_approvals',
        `${outcome.limit} calls of this agent, with its parent or children, are already waiting for a decision. Wait until some are decided.`,
        { audit_id },
        { 'Retry-After': '60' },
      );
    case 'too_many_calls':
      return refused(
        'too_many_calls',
        'Too many calls of this agent and its children, or of all agents, are under way, or their responses were not read yet. Read them, then try again.',
        { audit_id },
        { 'Retry-After': '1' },
      );
    case 'unreachable': {
      const unknown = platformEffectOf(outcome) === 'unknown';
      return refused(
        'upstream_unreachable',
        `${outcome.detail}${unknown ? ' The call may have been made: check the platform before you repeat it.' : ''}`,
        { audit_id, code: outcome.code, outcome: reachOf(outcome) },
      );
    }
    case 'response_blocked':
      return refused('upstream_response_blocked', sentence(BLOCKED_DETAILS[outcome.cause]), { audit_id });
    case 'request_cut':
      return refused('invalid_request', sentence(outcome.detail), { audit_id });
    default:
      return assertNever(outcome);
  }
}

/** Returns the members of `_meta` for a platform's answer. */
export const answeredNotes = (outcome: OutcomeOf<'answered'>): Record<string, unknown> => ({
  audit_id: outcome.call.auditId,
  upstream_status: outcome.upstreamStatus,
  ...answerNotes(outcome),
});

/** Returns the limit of the rule that holds the call, if it has one. */
function limitOfHold({ call }: OutcomeOf<'held'>): { limit?: ReportedLimit } {
  const verdict = call.decided?.verdict;
  return verdict?.kind === 'hold' && verdict.limit ? { limit: verdict.limit } : {};
}

const receiptLink = (auditId: string) => ({ capability: 'audit.receipt', endpoint: `/v1/audit/${auditId}/receipt` });

const ME = { capability: 'agents.me', endpoint: '/v1/agents/me' };
const ACCESS_REQUEST = { capability: 'access_requests.create', endpoint: '/v1/access-request' };
const PERMISSIONS = { capability: 'permissions.read', endpoint: '/v1/agent/permissions' };
/** Refusals that an owner can lift by granting more, or by deciding a pending request (specification, Errors 5; Access request). */
const MAY_BE_REQUESTED = new Set<DenyReason>(['scope_not_granted', 'no_permission_record', 'grant_expired']);
const mayBeRequested = (verdict: OutcomeOf<'denied'>['verdict']): boolean =>
  MAY_BE_REQUESTED.has(verdict.reason) || isUndecided(verdict);
/** Whether an access request for this call could be granted. */
export const isGrantable = (verdict: OutcomeOf<'denied'>['verdict']): boolean =>
  mayBeRequested(verdict) && verdict.notGrantable !== true;

/** Suggests an access request for what is not granted (specification, Errors 5), and the permissions where no owner could grant it. */
function nextAfter(verdict: OutcomeOf<'denied'>['verdict']) {
  if (verdict.halt !== undefined) return [ME];
  if (!mayBeRequested(verdict)) return [];
  return [ACCESS_REQUEST, ...(verdict.notGrantable ? [PERMISSIONS] : [])];
}

/** Builds ActionDenied of the specification. */
function denied({ services, correlationId }: ReplyContext, { verdict, call }: OutcomeOf<'denied'>): Reply {
  const { auditId, organisationId } = call;
  const halted = verdict.halt !== undefined;
  const { halt, violating, reason, limit, refusedPlatformId } = verdict;
  const retryAfter = halt?.retry_after_seconds ?? verdict.retryAfterSeconds;
  const error = halted ? 'agent_halted' : 'Permission denied';
  const next = [...nextAfter(verdict), receiptLink(auditId)];
  return {
    ...json(403, {
      error,
      reason,
      detail: sentence(verdict.detail),
      correlation_id: correlationId,
      audit_id: auditId,
      ...(halt && { halt }),
      // The agent can still use its other platforms, so the answer names the refused one.
      ...(refusedPlatformId !== undefined && { platform: refusedPlatformId }),
      ...(violating && { violating }),
      ...(limit && { limit }),
      ...(reason === 'repo_not_allowed' && { constraint: { kind: 'repos', reason, violating: violating ?? [] } }),
      report_hint: reportHint(
        { code: reason, severity: 'warning', endpoint: '/v1/actions' },
        { services, correlationId },
      ),
      _meta: meta(services, organisationId, CAPABILITY, { audit_id: auditId }, next),
    }),
    ...(retryAfter !== undefined && { headers: { 'Retry-After': String(retryAfter) } }),
  };
}
