/** Builds the owners' view of a held call. */

import { z } from 'zod';
import { hasEnded, isSuspended } from '../approvals/asking-agent.ts';
import { approvalsOf, approversNamed } from '../approvals/earlier-approvals.ts';
import { personOnRecord } from '../approvals/held-person.ts';
import { sentenceOfHeld } from '../approvals/held-sentence.ts';
import { howDecided, statusAt } from '../audit/approval-state.ts';
import { AuditFlags, NotedChange, readFlagsAs } from '../audit/audit-flags.ts';
import type { Broker } from '../broker.ts';
import { describeMatched } from '../facts/matched-rules.ts';
import type { NameOfPlatform } from '../facts/platform-names.ts';
import { PURGED } from '../policy/retention.ts';
import type { Services } from '../services.ts';
import type { OpenApproval } from '../store/approvals.ts';
import type { HeldCall } from '../store/held-calls.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { parentNamed } from './agent-parent.ts';
import { Refusal } from './errors.ts';
import { instant } from './reply.ts';
import { shownSentence } from './sentence.ts';

/** How long the answer to an approval waits for the replay, which continues without it. */
export const REPLAY_WAIT_MS = 15_000;

export const noLongerPending = () =>
  new Refusal('approval_expired', 'This call is no longer pending: it expired, or its agent was revoked or expired.');

/** Returns the page on which a person decides. The id is a capability: whoever has the link sees the request while it is pending. */
export const approveUrl = ({ baseUrl }: Pick<Broker, 'baseUrl'>, id: string): string => `${baseUrl}/approve/${id}`;

/** Returns whole seconds until the decision deadline; null when the call is not pending any more. */
export const secondsLeft = (one: Pick<ApprovalTable, 'status' | 'expires_at'>, now: number): number | null =>
  statusAt(one, now) === 'pending' ? Math.ceil((one.expires_at - now) / 1000) : null;

/** Returns why the call is held: the reason, its text, and the rules that matched; for a corrected call, why the corrected version is held. */
export async function heldBecause({ compiled }: Pick<Services, 'compiled'>, held: HeldCall) {
  const { reason, detail, decision } = held.correction_audit_id === null ? holding(held) : holdingCorrected(held);
  // The audit row is deleted after its retention time; the approval stays.
  return {
    reason: reason ?? PURGED,
    detail: reason === null ? 'The audit row of it is no longer kept.' : detail,
    rules: await describeMatched(compiled, held.organisation_id, decision),
  };
}

const holding = ({ held_reason, held_detail, held_decision }: HeldCall) => ({
  reason: held_reason,
  detail: held_detail,
  decision: held_decision,
});

/** The notes of a correction: `held_by` of its audit row (correct-held.ts). */
const Corrected = AuditFlags.extend({ change: NotedChange.extend({ held_by: z.looseObject({ reason: z.string() }) }) });

function holdingCorrected({ correction_audit_id: id, correction_detail: detail, correction_flags: flags }: HeldCall) {
  if (id === null || flags === null) return { reason: null, detail: null, decision: null };
  const { held_by } = readFlagsAs(Corrected, { id, flags }).change;
  return { reason: held_by.reason, detail, decision: JSON.stringify(held_by) };
}

/** Returns how many people have to approve the call, and how many have whose approvals count; null for one person. */
export async function approversOf(
  { store }: Pick<Broker, 'store'>,
  one: Pick<ApprovalTable, 'organisation_id' | 'id' | 'approvers' | 'approved_before' | 'status'>,
) {
  if (one.approvers === null) return null;
  const before = await approvalsOf(store.db, one);
  return { needed: one.approvers, given: before.length + (one.status === 'approved' ? 1 : 0) };
}

/** Returns the status of the call so far. */
export async function stated(broker: Pick<Broker, 'clock' | 'store'>, one: OpenApproval) {
  const now = broker.clock();
  return {
    approval_id: one.id,
    status: statusAt(one, now),
    created_at: instant(one.created_at),
    expires_at: instant(one.expires_at),
    expires_in_seconds: secondsLeft(one, now),
    decided_at: instant(one.decided_at),
    decided_by: one.decided_by,
    how: howDecided(one),
    note: one.note,
    approvers: await approversOf(broker, one),
    executed_at: instant(one.executed_at),
    execution_error: one.execution_error,
    result_summary: one.result_summary,
    audit_ids: { held: one.audit_id, decided: one.decision_audit_id, replayed: one.replay_audit_id },
  };
}

/** Returns the agent of a held call. */
export const agentNamed = (held: HeldCall) => ({
  agent_id: held.agent_public_id,
  name: held.agent_name,
  parent: parentNamed(held),
  suspended: isSuspended(held),
  ended: hasEnded(held),
});

/** Returns what an owner can see without opening the request. `reason` is the agent's own text; `nameOf` returns the name of its platform. */
export const summary = async (
  services: Pick<Services, 'broker' | 'compiled'>,
  held: HeldCall,
  nameOf: NameOfPlatform,
) => ({
  ...(await stated(services.broker, held)),
  sentence: shownSentence(sentenceOfHeld(services.broker, held)),
  approve_url: approveUrl(services.broker, held.id),
  agent: { id: held.agent_id, status: held.agent_status, ...agentNamed(held) },
  platform: held.platform_id,
  platform_name: nameOf(held.platform_id),
  platform_suspended: held.platform_suspended === 1,
  connection: held.connection_id && { connection_id: held.connection_id, label: held.connection_label },
  method: held.method,
  path: held.path,
  scope: held.scope,
  reason: held.agent_reason,
  caller: personOnRecord(held),
  decided_by_email: held.decided_by_email,
  approved_before: await approversNamed(services.broker, held),
  held_because: await heldBecause(services, held),
  request_hash: held.request_hash,
  corrected: held.corrected_at === null ? null : { at: instant(held.corrected_at), by_email: held.corrected_by_email },
});
