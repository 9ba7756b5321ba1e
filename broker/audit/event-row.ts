/** Audit rows of events, which are not calls: an owner's change, a decision on a held call, a breaker, an upstream's tools. */
import type { Instant } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import { type AuditFlags, flagsText } from './audit-flags.ts';

export type AuditEvent = {
  auditId: string;
  correlationId: string;
  createdAt: Instant;
  instanceId: string;
  organisationId: string;
  agent?: { id: string | null; agent_id: string | null } | undefined;
  /** What happened, such as `policy_changed`. */
  reason: string;
  detail?: string | null | undefined;
  platform?: string | undefined;
  connectionId?: string | null | undefined;
  scope?: string | undefined;
  /** Method of the call that the event is about, if there is one; `path` likewise. */
  method?: AuditRow['method'];
  path?: string | null;
  approvalId?: string | null;
  sessionId?: string | null;
  agentReason?: string | null;
  upstreamStatus?: number | null;
  flags?: AuditFlags;
};

/** Builds the row of an event, without finish time, hash and signature, which the recorder adds. */
export function eventRow(event: AuditEvent): AuditRow {
  return {
    organisation_id: event.organisationId,
    id: event.auditId,
    state: 'final',
    kind: 'event',
    created_at: event.createdAt,
    finished_at: null,
    agent_id: event.agent?.id ?? null,
    agent_public_id: event.agent?.agent_id ?? null,
    platform_id: event.platform ?? null,
    connection_id: event.connectionId ?? null,
    scope: event.scope ?? null,
    method: event.method ?? null,
    path: event.path ?? null,
    result: null,
    reason: event.reason,
    detail: event.detail ?? null,
    decision: null,
    approval_id: event.approvalId ?? null,
    session_id: event.sessionId ?? null,
    agent_reason: event.agentReason ?? null,
    violating: null,
    upstream_status: event.upstreamStatus ?? null,
    flags: event.flags === undefined ? null : flagsText(event.flags),
    pii: null,
    correlation_id: event.correlationId,
    row_hash: null,
    receipt_kid: null,
    receipt: null,
    receipt_format: null,
    receipt_issuer: null,
    instance_id: event.instanceId,
  };
}
