/** Builds the data of a held call's later audit rows and of its replay. */
import type { ApprovalProvenance } from '../audit/approval-state.ts';
import type { AuditFlags } from '../audit/audit-flags.ts';
import type { AuditEvent } from '../audit/event-row.ts';
import type { CallRecord } from '../audit/outcome.ts';
import type { Broker, Uses } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import type { Instant, JsonObject } from '../policy/facts.ts';
import type { HeldCall } from '../store/held-calls.ts';
import type { Action } from '../wire/action.ts';
import { openRequest } from './sealed.ts';

type Ids = { auditId: string; correlationId: string; now: Instant };

/** Returns the initial record of a replay: what was held, and who decided. */
export function recordOfHeld(
  held: HeldCall,
  provenance: ApprovalProvenance,
  { auditId, correlationId, now }: Ids,
  { instanceId }: Pick<Broker, 'instanceId'>,
): CallRecord {
  return {
    auditId,
    correlationId,
    createdAt: now,
    instanceId,
    organisationId: held.organisation_id,
    agent: { id: held.agent_id, agentId: held.agent_public_id, parentAgentId: null },
    sessionId: held.session_id,
    asked: {
      platform: held.platform_id,
      scope: held.scope,
      method: held.method as Action['method'],
      ...(held.agent_reason !== null && { reason: held.agent_reason }),
    },
    path: held.path,
    droppedHeaders: [],
    pii: null,
    git: undefined,
    decided: undefined,
    connectionId: held.connection_id,
    approval: { id: held.id, provenance },
    refreshUnavailable: false,
  };
}

/** Returns an event about a held call, with the given reason and details. */
export function eventOfHeld(
  held: HeldCall,
  provenance: ApprovalProvenance,
  { auditId, correlationId, now }: Ids,
  { instanceId }: Pick<Broker, 'instanceId'>,
): Omit<AuditEvent, 'reason'> & { flags: AuditFlags } {
  return {
    auditId,
    correlationId,
    createdAt: now,
    instanceId,
    organisationId: held.organisation_id,
    agent: { id: held.agent_id, agent_id: held.agent_public_id },
    platform: held.platform_id,
    connectionId: held.connection_id,
    scope: held.scope,
    method: held.method as Action['method'],
    path: held.path,
    approvalId: held.id,
    sessionId: held.session_id,
    agentReason: held.agent_reason,
    flags: { approval: provenance },
  };
}

/** Opens the exact request of a held call. Undefined, and logged, when the stored value was modified. */
export function readHeldRequest({ broker }: Uses<'vault' | 'log'>, held: HeldCall): JsonObject | undefined {
  try {
    return openRequest(broker, held);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error({ err: error, security: true, approval: held.id }, 'the request of a held call cannot be opened');
    return undefined;
  }
}
