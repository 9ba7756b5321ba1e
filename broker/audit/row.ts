/** Audit rows before they are stored. */
import type { Broker } from '../broker.ts';
import type { AuditRow } from '../store/audit.ts';
import type { Action } from '../wire/action.ts';

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
    receipt_format: null,
    receipt_issuer: null,
    instance_id: broker.instanceId,
  };
}

/** Adds facts about the call that are not the decision: dropped headers, redaction, error codes. */
export function noteFlags(row: AuditRow, flags: Record<string, unknown>): void {
  const present = Object.entries(flags).filter(([, value]) => value !== undefined);
  if (present.length === 0) return;
  row.flags = JSON.stringify({ ...(row.flags === null ? {} : JSON.parse(row.flags)), ...Object.fromEntries(present) });
}
