/** A call that waits for a person: stored with its row and receipt in one transaction, everything for its replay sealed. */

import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import type { Outcome } from '../audit/outcome.ts';
import type { Recorded } from '../audit/record.ts';
import type { Changing } from '../audit/record-change.ts';
import { noteFlags } from '../audit/row.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { waitsUntil } from '../facts/facts.ts';
import { countPending, lockPending, putApproval } from '../store/approvals.ts';
import type { AuditRow } from '../store/audit.ts';
import { areLiving } from '../store/children.ts';
import type { Action } from '../wire/action.ts';
import { requestHash, requestOf } from './held-request.ts';
import { sealRequest } from './sealed.ts';

/** People who are asked too often approve anything. */
export const MAX_PENDING = 100;

/** What is held: a call that was read and decided, with its row. */
type CallToHold = {
  who: AgentPrincipal;
  action: Action;
  path: string;
  headers: Readonly<Record<string, string>>;
  dropped: readonly string[];
  row: AuditRow;
};

/** Undoes the transaction that would hold one more. */
class TooManyPending extends Error {}

/** Undoes the transaction of an agent that came to its end, or whose parent did, after the call was decided. */
class Over extends Error {}

/**
 * Stores the call for a decision, unless too many of this agent, and of its parent or children, wait already. `over`: the agent or
 * its parent came to its end meanwhile; nothing is recorded, and the call is to be decided again. A call waits no longer than its agent
 * lives.
 */
export async function hold(services: Changing, call: CallToHold, reason: string): Promise<Recorded<Outcome> | 'over'> {
  const { broker, recorder, changes } = services;
  const { agent } = call.who;
  const now = broker.clock();
  const { row } = call;
  const request = requestOf(call);
  const id = uuidv4();
  const ref = { organisation_id: agent.organisation_id, id };
  const expiresAt = waitsUntil(agent, now);
  row.result = 'held';
  row.approval_id = id;
  noteFlags(row, { dropped_headers: call.dropped.length > 0 ? call.dropped : undefined });
  const notes = call.dropped.length > 0 ? { dropped_headers: call.dropped } : {};
  const held: Outcome = { kind: 'held', auditId: row.id, approvalId: id, expiresAt, reason, notes };
  try {
    const recorded = await recorder.finishWith(row, held, async (db) => {
      // By its children an agent gets no more before people than it could itself.
      const eldest = agent.parent_id ?? agent.id;
      await lockPending(db, agent.organisation_id, eldest);
      const family = agent.parent_id === null ? [agent.id] : [agent.id, agent.parent_id];
      if (!(await areLiving(db, agent.organisation_id, family, now))) throw new Over();
      if ((await countPending(db, agent.organisation_id, eldest, now)) >= MAX_PENDING) throw new TooManyPending();
      await putApproval(db, {
        ...ref,
        agent_id: agent.id,
        audit_id: row.id,
        status: 'pending',
        platform_id: call.action.platform,
        scope: call.action.scope,
        method: call.action.method,
        path: call.path,
        request_hash: requestHash(request),
        action: sealRequest(broker, ref, request),
        created_at: now,
        expires_at: expiresAt,
      });
      await changes.announce(db, ref);
    });
    changes.tell(ref);
    return recorded;
  } catch (error) {
    const { cause } = error instanceof AuditUnavailable ? error : {};
    if (!(cause instanceof TooManyPending || cause instanceof Over)) throw error;
    row.approval_id = null;
    if (cause instanceof Over) return 'over';
    row.result = 'blocked';
    row.reason = 'too_many_pending_approvals';
    return await recorder.finish(row, { kind: 'too_many_pending', auditId: row.id, limit: MAX_PENDING }, false);
  }
}
