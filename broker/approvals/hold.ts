/** Holds a call for approval: stores it with its audit row and receipt in one transaction, with the sealed request for the replay. */

import type { CallRecord, OutcomeOf } from '../audit/outcome.ts';
import type { Changing } from '../audit/record-change.ts';
import type { Recorded } from '../audit/recorder.ts';
import { rowOf } from '../audit/row.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Uses } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { waitsUntil } from '../facts/waits-until.ts';
import type { Verdict } from '../policy/facts.ts';
import { pacer } from '../runtime/pace.ts';
import type { Sentence } from '../sentences/part.ts';
import { countPending, lockPending, putApproval } from '../store/approvals.ts';
import { areLiving } from '../store/children.ts';
import { putHeldJoin } from '../store/held-joins.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import type { Action } from '../wire/action.ts';
import { type Destination, type HeldRaw, requestHash, requestOf, withDestination } from './held-request.ts';
import { writtenSentence } from './held-sentence.ts';
import { sealBasis, sealRequest, sealSentence } from './sealed.ts';

/** Limit of pending calls per agent family, against approval fatigue. */
export const MAX_PENDING = 100;

/** A parsed and decided call. */
type CallToHold = {
  who: AgentPrincipal;
  action: Action;
  path: string;
  headers: Readonly<Record<string, string>>;
  destination: Destination;
  record: CallRecord;
  /** Describes the call for owners. */
  sentence: Sentence;
  /** Present for a body that its operation encodes in another way than its platform. */
  given?: Parameters<typeof requestOf>[0]['given'];
  /** Present for a raw request. */
  raw?: HeldRaw | undefined;
  verdict: Extract<Verdict, { kind: 'hold' }>;
};

type NotHeld = 'agent_ended' | 'too_many_pending' | 'joined';

/**
 * Stores the call for a decision, unless too many of this agent, its parent and its children are pending already. `agent_ended`: the agent or its
 * parent has ended meanwhile; nothing is recorded, and the call is to be decided again. `joined`: the same request is held already. A call expires no
 * later than its agent. Throws AuditUnavailable.
 */
export async function hold(
  { broker, recorder, changes }: Changing & Uses<'vault'>,
  {
    who: { agent },
    action,
    path,
    headers,
    destination,
    record,
    sentence,
    given,
    raw,
    verdict: { basis, decideIn, approvers },
  }: CallToHold,
): Promise<Recorded<OutcomeOf<'held'>> | RolledBack<NotHeld>> {
  const now = broker.clock();
  const request = requestOf({ action, headers, record, given, raw });
  const id = uuidv4();
  const ref = { organisation_id: agent.organisation_id, id };
  const expiresAt = waitsUntil(agent, now);
  const outcome: OutcomeOf<'held'> = { kind: 'held', approvalId: id, expiresAt, sentence, call: record };
  // Hashing and sealing happen before the transaction, which blocks others; for long requests they are paced.
  const rest = pacer();
  const hashed = requestHash(request);
  await rest();
  const sealed = sealRequest(broker, ref, withDestination(request, destination));
  await rest();
  const sealedBasis = basis ? sealBasis(broker, ref, basis) : null;
  await rest();
  const recorded = await recorder.record<typeof outcome, NotHeld>({
    row: rowOf(outcome),
    value: outcome,
    together: async (tx) => {
      // Children share the limit of their parent.
      const familyRoot = agent.parent_id ?? agent.id;
      await lockPending(tx, agent.organisation_id, familyRoot);
      const family = agent.parent_id === null ? [agent.id] : [agent.id, agent.parent_id];
      if (!(await areLiving(tx, agent.organisation_id, family, now))) return rollback('agent_ended');
      if ((await countPending(tx, agent.organisation_id, familyRoot, now)) >= MAX_PENDING)
        return rollback('too_many_pending');
      await putApproval(tx, {
        ...ref,
        agent_id: agent.id,
        audit_id: record.auditId,
        status: 'pending',
        platform_id: action.platform,
        scope: action.scope,
        method: action.method,
        path,
        request_hash: hashed,
        action: sealed,
        sentence: sealSentence(broker, ref, writtenSentence(sentence)),
        decide_in: decideIn.length === 0 ? null : JSON.stringify(decideIn),
        approvers: approvers ?? null,
        basis: sealedBasis,
        created_at: now,
        expires_at: expiresAt,
      });
      if (raw?.join && !(await putHeldJoin(tx, { ...ref, agent_id: agent.id, ...raw.join, now })))
        return rollback('joined');
      await changes.announce(tx, ref);
      return undefined;
    },
  });
  if (!(recorded instanceof RolledBack)) changes.tell(ref);
  return recorded;
}
