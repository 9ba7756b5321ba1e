/** Builds audit rows from outcomes. Pure: only the recorder adds time, hash and signature. */
import type { Verdict } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import { answeredFlags, followedFlags, streamedFlags } from './answer-notes.ts';
import { type AuditFlags, flagsText, readFlags } from './audit-flags.ts';
import { reachOf } from './effect.ts';
import { CUT_PUSH, notPassedOn, pushFlags, reportFlags } from './git-row.ts';
import { assertNever, BLOCKED_DETAILS, type CallRecord, type Outcome, type ReauthCause } from './outcome.ts';
import type { PiiFlags, PiiKind } from './pii.ts';

/** The columns that depend on how a call ended. */
type End = {
  result: NonNullable<AuditRow['result']>;
  reason: string;
  detail: string | null;
  verdict?: Verdict | undefined;
  approvalId?: string;
  upstreamStatus?: number;
  responsePii?: readonly PiiKind[] | null | undefined;
  flags?: AuditFlags;
};

/** Builds the final row of an outcome, without finish time, hash and signature. */
export function rowOf(outcome: Outcome): AuditRow {
  const { call } = outcome;
  const end = endOf(outcome);
  const row = begin(call, end);
  row.state = 'final';
  row.result = end.result;
  row.reason = end.reason;
  row.detail = end.detail;
  row.approval_id = end.approvalId ?? row.approval_id;
  row.upstream_status = end.upstreamStatus ?? null;
  row.violating = violatingOf(end.verdict ?? call.decided?.verdict);
  return row;
}

/** Builds the row of a call that is about to be sent. For a streamed call `ended` is `unknown` until its end is recorded. */
export function intentRow(call: CallRecord, isStreamed = false): AuditRow {
  const row = begin(call, isStreamed ? { flags: { ended: 'unknown' } } : {});
  const verdict = call.decided?.verdict;
  if (verdict) {
    row.reason = allowedReason(call, verdict);
    row.detail = verdict.detail;
  }
  return row;
}

/** Returns the reason of a call that is made: `approved` where a person's approval replaces the hold that rules demand. */
const allowedReason = ({ approval }: CallRecord, verdict: Verdict): string =>
  approval !== undefined && verdict.kind === 'hold' ? 'approved' : verdict.reason;

const REAUTH: Record<ReauthCause, { result: End['result']; reason: string }> = {
  expired: { result: 'blocked', reason: 'platform_reauth_needed' },
  refresh_failed: { result: 'errored', reason: 'platform_reauth_needed' },
  refused: { result: 'errored', reason: 'platform_reauth_needed' },
  malformed: { result: 'errored', reason: 'credential_malformed' },
  no_token: { result: 'errored', reason: 'platform_reauth_needed' },
};

/** The flag for each cause of a blocked answer. */
const BLOCKED_FLAGS = { credential_found: 'redacted', not_masked: 'not_masked' } as const;

/** Returns the columns of an outcome: result, reason, detail and related ones. */
export function endOf(outcome: Outcome): End {
  const { call } = outcome;
  const verdict = call.decided?.verdict;
  const decided = verdict?.detail ?? null;
  const blocked = (reason: string): End => ({ result: 'blocked', reason, detail: decided });
  switch (outcome.kind) {
    case 'answered':
      return {
        result: 'allowed',
        reason: verdict ? allowedReason(call, verdict) : 'allowed',
        detail: decided,
        upstreamStatus: outcome.upstreamStatus,
        responsePii: outcome.responsePii,
        ...answeredFlags(outcome),
      };
    case 'held':
      return { result: 'held', reason: verdict?.reason ?? 'held', detail: decided, approvalId: outcome.approvalId };
    case 'denied': {
      const { reason, detail } = outcome.verdict;
      return { result: 'denied', reason, detail, verdict: outcome.verdict };
    }
    case 'inactive':
      return { result: 'denied', reason: 'agent_inactive', detail: outcome.detail };
    case 'invalid':
      return { result: 'errored', reason: outcome.code, detail: outcome.detail };
    case 'not_connected':
      return blocked('platform_not_connected');
    case 'consent_required':
    case 'needs_consent': {
      const { kind: reason, refused } = outcome;
      const detail = ('detail' in outcome ? outcome.detail : undefined) ?? decided;
      return refused
        ? { result: 'errored', reason, detail, upstreamStatus: 403, ...refused }
        : { ...blocked(reason), detail };
    }
    case 'credential_unreadable':
      return { result: 'errored', reason: outcome.kind, detail: decided };
    case 'reauth_needed':
      return {
        ...REAUTH[outcome.cause],
        detail: outcome.detail ?? decided,
        ...(outcome.cause === 'refused' && { upstreamStatus: 401, responsePii: outcome.responsePii }),
      };
    case 'too_many_pending':
      return blocked('too_many_pending_approvals');
    case 'too_many_calls':
      return { result: 'blocked', reason: 'too_many_calls', detail: 'Too many calls were in flight at the same time.' };
    case 'request_cut':
      return { result: 'errored', reason: outcome.kind, detail: outcome.detail };
    case 'cannot_hold':
      return {
        result: 'denied',
        reason: call.git ? 'approval_required_unsupported_for_git' : 'approval_required_unsupported',
        detail: decided,
      };
    case 'unreachable':
      return {
        result: 'errored',
        reason: 'upstream_unreachable',
        detail: outcome.detail,
        flags: { code: outcome.code, outcome: reachOf(outcome), ...followedFlags(outcome) },
      };
    case 'response_blocked':
      return {
        result: 'blocked',
        reason: 'upstream_response_blocked',
        detail: BLOCKED_DETAILS[outcome.cause],
        upstreamStatus: outcome.upstreamStatus,
        flags: { [BLOCKED_FLAGS[outcome.cause]]: true, ...followedFlags(outcome) },
      };
    case 'streamed': {
      const { ended, upstreamStatus } = outcome;
      const flags = { ...streamedFlags(outcome), ...reportFlags(outcome) };
      if (ended === 'credential_found' || ended === 'not_masked')
        return {
          result: 'blocked',
          reason: 'upstream_response_blocked',
          detail: BLOCKED_DETAILS[ended],
          upstreamStatus,
          flags,
        };
      if (reachOf(outcome) === 'unknown')
        return { result: 'errored', reason: 'outcome_unknown', detail: CUT_PUSH, upstreamStatus, flags };
      const reason = call.git?.reason ?? (verdict ? allowedReason(call, verdict) : 'allowed');
      return { result: 'allowed', reason, detail: decided, upstreamStatus, flags };
    }
    case 'not_passed_on':
      return { result: 'errored', ...notPassedOn(outcome) };
    case 'not_as_approved':
      return { result: 'blocked', reason: outcome.reason, detail: outcome.detail };
    default:
      return assertNever(outcome);
  }
}

/** Whether `platformEffectOf` is not `none`, derived from the final row alone; also works for rows closed by another process. */
export function mayHaveActed(row: Readonly<AuditRow>): boolean {
  const { method, result, reason } = row;
  if (method === 'GET') return false;
  if (result === 'blocked') return reason === 'upstream_response_blocked';
  if (result !== 'errored') return result === 'allowed';
  if (reason === 'outcome_unknown') return true;
  return readFlags(row).outcome === 'unknown';
}

/** Whether the response to a call is stored for its Idempotency-Key: only where the call is held or may have acted. */
export const keepsResponse = (row: Readonly<AuditRow>): boolean => row.result === 'held' || mayHaveActed(row);

function begin(call: CallRecord, { flags, responsePii = null }: Pick<End, 'flags' | 'responsePii'> = {}): AuditRow {
  const { agent, asked } = call;
  return {
    organisation_id: call.organisationId,
    id: call.auditId,
    state: 'intent',
    kind: 'action',
    created_at: call.createdAt,
    finished_at: null,
    agent_id: agent.id,
    agent_public_id: agent.agentId,
    platform_id: asked.platform ?? null,
    connection_id: call.connectionId,
    scope: asked.scope ?? null,
    method: asked.method ?? null,
    path: call.path,
    result: null,
    reason: 'in_flight',
    detail: null,
    decision: call.decided?.decision ?? null,
    approval_id: call.approval?.id ?? null,
    session_id: call.sessionId,
    agent_reason: asked.reason ?? null,
    violating: null,
    upstream_status: null,
    flags: flagsOf(call, flags),
    pii: call.pii === null && responsePii === null ? null : piiText(call.pii, responsePii),
    correlation_id: call.correlationId,
    row_hash: null,
    receipt_kid: null,
    receipt: null,
    receipt_format: null,
    receipt_issuer: null,
    instance_id: call.instanceId,
  };
}

const piiText = (request: readonly PiiKind[] | null, response: readonly PiiKind[] | null): string =>
  JSON.stringify({ request, response } satisfies { [Side in keyof PiiFlags]: readonly PiiKind[] | null });

const violatingOf = (verdict: Verdict | undefined): string | null =>
  verdict?.kind === 'deny' && verdict.violating ? JSON.stringify(verdict.violating) : null;

/** Returns the flags column of a call; null when there are no flags. `ended`: flags about how the call ended. */
function flagsOf(call: CallRecord, ended?: AuditFlags): string | null {
  const { agent, approval, droppedHeaders, git, caller, standing, limits, traceId, accessEnded } = call;
  const flags = {
    ...(agent.parentAgentId !== null && { parent: agent.parentAgentId }),
    ...(approval && { approval: approval.provenance }),
    ...(droppedHeaders.length > 0 && { dropped_headers: droppedHeaders }),
    ...(call.refreshUnavailable && { refresh: 'unavailable' }),
    ...(caller && { caller }),
    ...call.bearer,
    ...(standing && { standing_approval: standing }),
    ...(limits && { limits }),
    ...(traceId !== undefined && { trace_id: traceId }),
    ...(git && pushFlags(git)),
    ...(accessEnded && { ended: 'access_ended', ended_because: accessEnded.reason }),
    ...ended,
  };
  return Object.keys(flags).length === 0 ? null : flagsText(flags);
}

/** Builds the final row of an intent without an outcome: nothing was sent, or the result is unknown. */
export const closedRow = (
  intent: AuditRow,
  reason: 'audit_unavailable' | 'outcome_unknown',
  detail: string,
): AuditRow => ({ ...intent, result: 'errored', reason, detail });
