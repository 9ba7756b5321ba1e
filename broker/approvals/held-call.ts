/** From a held call to what its later rows and its replay take: who asked, for what, exactly. */

import type { ApprovalProvenance } from '../audit/approval-state.ts';
import { beginRow, noteFlags } from '../audit/row.ts';
import type { Broker } from '../broker.ts';
import { SealError } from '../crypto/seal.ts';
import type { JsonObject } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import type { HeldCall } from '../store/held-calls.ts';
import type { Action } from '../wire/action.ts';
import { openRequest } from './sealed.ts';

/** A row about a held call, with who decided on it, before anything more is known. */
export function rowOfHeld(
  held: HeldCall,
  provenance: ApprovalProvenance,
  ids: { auditId: string; correlationId: string },
  broker: Pick<Broker, 'clock' | 'instanceId'>,
): AuditRow {
  const agent = { organisation_id: held.organisation_id, id: held.agent_id, agent_id: held.agent_public_id };
  const action = {
    platform: held.platform_id,
    scope: held.scope,
    method: held.method as Action['method'],
    ...(held.agent_reason !== null && { reason: held.agent_reason }),
  };
  const row = beginRow({ agent, sessionId: held.session_id }, action, ids, broker);
  row.path = held.path;
  row.connection_id = held.connection_id;
  row.approval_id = held.id;
  noteFlags(row, { approval: provenance });
  return row;
}

/** The exact request; undefined, and said in the log, when what is stored was altered. */
export function readHeldRequest(
  { broker }: { broker: Pick<Broker, 'vault' | 'log'> },
  held: HeldCall,
): JsonObject | undefined {
  try {
    return openRequest(broker, held);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error({ err: error, security: true, approval: held.id }, 'the request of a held call cannot be opened');
    return undefined;
  }
}
