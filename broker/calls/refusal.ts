/** Outcomes of calls that are not made. */
import type { ApprovalProvenance } from '../audit/approval-state.ts';
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import type { Verdict } from '../policy/facts.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';
import { TOO_LONG } from './judge-body.ts';
import { afterRefusal } from './suspend.ts';

/** Returns the outcome of a refusal. An agent that is not set up yet gets that as the reason instead. */
export function refusal(call: CallRecord, verdict: Extract<Verdict, { kind: 'deny' }>): Outcome {
  if (verdict.reason === 'agent_inactive') return { kind: 'inactive', detail: verdict.detail, call };
  return { kind: 'denied', verdict, call };
}

/** The same, including what a refusal may do to the agent (suspension). */
export async function refuse(
  services: CallServices,
  call: Call,
  verdict: Extract<Verdict, { kind: 'deny' }>,
): Promise<Outcome> {
  await afterRefusal(services, call, verdict);
  return refusal(call.record, verdict);
}

/** The request would differ now from the approved one. */
export const notAsApproved = ({ record }: Call, reason: string, detail: string): Outcome => ({
  kind: 'not_as_approved',
  reason,
  detail,
  call: record,
});

/** How many people approved a call. */
export const approvalsIn = ({ approved_before: before = [] }: ApprovalProvenance): number => before.length + 1;

/** How many people have to approve a call; 0: none. */
export const approvalsNeeded = (verdict: Verdict): number => (verdict.kind === 'hold' ? (verdict.approvers ?? 1) : 0);

/** The rules need the approval of more people now than approved the call; undefined when they do not. */
export function tooFewApproved(call: Call, verdict: Verdict, provenance: ApprovalProvenance): Outcome | undefined {
  const [given, needed] = [approvalsIn(provenance), approvalsNeeded(verdict)];
  if (given >= needed) return undefined;
  const detail = `The rules now need the approval of ${needed} people, and this call has that of ${given}.`;
  return notAsApproved(call, 'more_approvers_needed', detail);
}

/** The decision needs the body, which is longer than is read (docs/decisions/21-raw-requests.md). */
export const tooLong = ({ record }: Call): Outcome => ({
  kind: 'invalid',
  code: 'payload_too_large',
  detail: `a rule or a limit of the grant depends on the body of this call, but ${TOO_LONG.why}; nothing was sent`,
  call: record,
});
