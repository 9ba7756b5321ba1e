/**
 * Corrects a held call before it is decided: an owner changes the agent's request, all rules are evaluated as if the agent had sent it, and the call
 * stays pending. An approval then applies to the corrected request, and has to name its hash.
 */

import { readHeldRequest } from '../approvals/held-call.ts';
import {
  actionOf,
  callerOf,
  rawOf,
  requestHash,
  requestOf,
  sealedDestination,
  withDestination,
} from '../approvals/held-request.ts';
import { writtenSentence } from '../approvals/held-sentence.ts';
import { mayBeOther } from '../approvals/read-held.ts';
import { sealAsked, sealRequest, sealSentence } from '../approvals/sealed.ts';
import { statusAt } from '../audit/approval-state.ts';
import { checkAuthorRole } from '../audit/author-role.ts';
import { type Changing, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import { destinationOf } from '../calls/forward.ts';
import { sentenceOfCall } from '../calls/sentence-of-call.ts';
import { simulate } from '../calls/simulate.ts';
import type { JsonObject } from '../policy/facts.ts';
import { correctHeldCall } from '../store/decisions.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { ChangeRefused } from './refused.ts';

/** The changed members; omitted ones stay unchanged. `requestHash`: hash of the request that was shown. */
export type Correcting = { endpoint?: string | undefined; data?: JsonObject | undefined; requestHash: string };

/** Returns the held call as it is pending now. Throws ChangeRefused, AuthorNotAllowed, or AuditUnavailable: then it is unchanged. */
export async function correctHeld(
  services: Changing & Uses<'vault'> & Parameters<typeof simulate>[0],
  by: ChangingOwner,
  approvalId: string,
  correcting: Correcting,
): Promise<HeldCall> {
  const { broker, changes } = services;
  const { db } = broker.store;
  const organisationId = by.owner.organisation_id;
  const find = async (): Promise<HeldCall> => {
    const found = await findHeldCall(db, organisationId, approvalId);
    if (!found) throw new ChangeRefused('not_found', 'The organisation has no such held call.');
    mayBeCorrected(found, correcting, broker.clock());
    return found;
  };
  const held = await find();
  const before = readHeldRequest(services, held);
  if (before === undefined || !mayBeOther(before))
    throw new ChangeRefused(
      'conflict',
      `${before && rawOf(before) ? 'A request that came through /proxy is sent as its client wrote it, and cannot be corrected.' : 'Only calls whose body is a JSON object can be corrected.'} Deny this call, and say in the note what it should be.`,
    );
  const { endpoint, data } = correcting;
  const asked = actionOf(before);
  const action = { ...asked, ...(endpoint !== undefined && { endpoint }), ...(data !== undefined && { data }) };
  const caller = callerOf(before);
  const agentId = held.agent_public_id;
  const tried = await simulate(services, agentId, { action, caller: caller && { verified: caller.verified } }, {});
  if (tried.kind === 'invalid') {
    const { code, detail } = tried.refused;
    throw new ChangeRefused(code === 'payload_too_large' ? 'invalid_request' : code, detail);
  }
  const { verdict, read, loaded } = tried;
  if (verdict.kind === 'deny' || !read)
    throw new ChangeRefused('conflict', `The corrected call would be refused: ${verdict.detail}.`, {
      reason: verdict.reason,
    });
  const { call, ask, onFile } = read;
  const record = { caller };
  const request = requestOf({ action, headers: call.headers, record, given: call.given });
  const hash = requestHash(request);
  if (hash === held.request_hash)
    throw new ChangeRefused(
      'invalid_request',
      'The correction changes nothing: the call already has this endpoint and body.',
    );
  const ref = { organisation_id: held.organisation_id, id: held.id };
  // Calls that were held before the address was stored have none, and stay without.
  const { platform } = loaded;
  const destination =
    platform && sealedDestination(before).address !== undefined
      ? destinationOf(platform, { ...call, action })
      : undefined;
  const decideIn = verdict.kind === 'hold' ? verdict.decideIn : [];
  const correction = {
    path: call.path,
    request_hash: hash,
    action: sealRequest(broker, ref, destination === undefined ? request : withDestination(request, destination)),
    asked: held.asked ?? sealAsked(broker, ref, before),
    sentence: sealSentence(broker, ref, writtenSentence(sentenceOfCall(loaded, ask, onFile))),
    // A corrected call cannot be the basis of a standing approval.
    basis: null,
    decide_in: decideIn.length === 0 ? null : JSON.stringify(decideIn),
    approvers: verdict.kind === 'hold' ? (verdict.approvers ?? null) : null,
    by: by.owner.id,
    at: broker.clock(),
  };
  const change = {
    reason: 'approval_corrected',
    agent: { id: held.agent_id, agent_id: agentId },
    platform: held.platform_id,
    scope: held.scope,
    approval: held.id,
    detail: verdict.kind === 'hold' ? verdict.detail : HELD_BY_NOTHING,
  };
  const { reason, matched } = verdict;
  const made = await recordChange(services, by, change, async (tx, note, auditId) => {
    const corrected = { ...correction, correction_audit_id: auditId };
    if (!(await correctHeldCall(tx, { ...ref, request_hash: held.request_hash }, corrected)))
      return rollback('decided_meanwhile');
    await checkAuthorRole(tx, by);
    note({
      request_hash: hash,
      request_hash_before: held.request_hash,
      held_by: { reason, policy: tried.policy, matched: [...matched] },
    });
    await changes.announce(tx, ref);
    return true;
  });
  if (made instanceof RolledBack) {
    await find();
    throw new ChangeRefused('approval_expired', NO_LONGER);
  }
  changes.tell(ref);
  return (await findHeldCall(db, organisationId, approvalId)) ?? held;
}

const HELD_BY_NOTHING = 'no rule would hold the corrected call';
const NO_LONGER = 'This call is no longer pending: it expired, or its agent was revoked or expired.';

/** Throws ChangeRefused when the call cannot be corrected. */
function mayBeCorrected(held: HeldCall, { requestHash: shown }: Correcting, now: number): void {
  const status = statusAt(held, now);
  if (status === 'expired') throw new ChangeRefused('approval_expired', NO_LONGER);
  if (status !== 'pending')
    throw new ChangeRefused('already_decided', `This call was ${status} already.`, {
      status,
      decided_by_email: held.decided_by_email,
    });
  if (shown !== held.request_hash)
    throw new ChangeRefused('request_changed', 'This is not the request that you were shown. Load it and look again.', {
      request_hash: held.request_hash,
    });
}
