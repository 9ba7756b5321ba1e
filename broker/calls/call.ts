/** A governed request in flight: what was asked, by whom, and the audit row that it fills. */

import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { JsonObject, Verdict } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import type { Action } from '../wire/action.ts';
import type { LoadedFacts } from './facts.ts';
import type { RecordedDecision } from './receipt.ts';

export type Call = {
  who: AgentPrincipal;
  action: Action;
  /** The endpoint, in normal form. */
  path: string;
  query: string;
  /** The agent's headers that are sent; what was dropped is listed. */
  headers: Readonly<Record<string, string>>;
  dropped: readonly string[];
  row: AuditRow;
};

/** Who asks, as far as a row names them; of an owner's change, the agent that it is about, if any. */
export type Asker = {
  agent: { organisation_id: string; id: string | null; agent_id: string | null };
  sessionId: string | null;
};

/** The row of a call before anything is known but who asks for what; of a malformed one, less than that. */
export function beginRow(
  who: Asker,
  action: Partial<Pick<Action, 'platform' | 'scope' | 'method' | 'reason'>>,
  ids: { auditId: string; correlationId: string },
  broker: Pick<Broker, 'clock' | 'instanceId'>,
): AuditRow {
  const { agent } = who;
  return {
    organisation_id: agent.organisation_id,
    id: ids.auditId,
    state: 'intent',
    kind: 'action',
    created_at: broker.clock(),
    finished_at: null,
    agent_id: agent.id,
    agent_public_id: agent.agent_id,
    platform_id: action.platform ?? null,
    connection_id: null,
    scope: action.scope ?? null,
    method: action.method ?? null,
    path: null,
    result: null,
    reason: 'in_flight',
    detail: null,
    decision: null,
    approval_id: null,
    session_id: who.sessionId,
    agent_reason: action.reason ?? null,
    violating: null,
    upstream_status: null,
    flags: null,
    pii: null,
    correlation_id: ids.correlationId,
    row_hash: null,
    receipt_kid: null,
    receipt: null,
    instance_id: broker.instanceId,
  };
}

/** Notes on the row what was decided, and on what. */
export function noteVerdict(row: AuditRow, verdict: Verdict, { facts }: LoadedFacts): void {
  const decision: RecordedDecision = {
    policy: facts.policy ? { id: facts.policy.id, name: facts.policy.name, version: facts.policy.version } : null,
    guardrails: { version: facts.guardrails.version },
    matched: verdict.matched,
    evaluated: verdict.evaluated,
  };
  row.decision = JSON.stringify(decision);
  row.reason = verdict.reason;
  row.detail = verdict.detail;
  if (verdict.kind === 'deny' && verdict.violating) row.violating = JSON.stringify(verdict.violating);
}

/** Adds facts about the call that are not the decision: dropped headers, redaction, error codes. */
export function noteFlags(row: AuditRow, flags: Record<string, unknown>): void {
  const present = Object.entries(flags).filter(([, value]) => value !== undefined);
  if (present.length === 0) return;
  row.flags = JSON.stringify({ ...(row.flags === null ? {} : JSON.parse(row.flags)), ...Object.fromEntries(present) });
}

/**
 * The exact request as a value: what an approver is shown, what is sealed, and what is replayed. Without the caller,
 * which is never stored (specification, Caller identity).
 */
export function requestOf(call: Pick<Call, 'action' | 'headers'>): JsonObject {
  const { action } = call;
  return {
    platform: action.platform,
    endpoint: action.endpoint,
    method: action.method,
    scope: action.scope,
    data: (action.data as JsonObject | undefined) ?? null,
    headers: { ...call.headers },
    connection_id: action.connection_id ?? null,
    reason: action.reason ?? null,
  };
}

/** SHA-256 of the canonical form (RFC 8785) of a request, in hexadecimal. */
export function requestHash(request: JsonObject): string {
  return sha256Hex(canonicalJson(request));
}
