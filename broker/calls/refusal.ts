/** Outcomes of calls that are not made. */
import type { CallRecord, Outcome } from '../audit/outcome.ts';
import type { Verdict } from '../policy/facts.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';
import { afterRefusal } from './suspend.ts';

/** The outcome of a refusal. An agent that is not set up yet is told that instead. */
export function refusal(call: CallRecord, verdict: Extract<Verdict, { kind: 'deny' }>): Outcome {
  if (verdict.reason === 'agent_inactive') return { kind: 'inactive', detail: verdict.detail, call };
  return { kind: 'denied', verdict, call };
}

/** The same, with what a refusal may do to the agent. */
export async function refuse(
  services: CallServices,
  call: Call,
  verdict: Extract<Verdict, { kind: 'deny' }>,
): Promise<Outcome> {
  await afterRefusal(services, call, verdict);
  return refusal(call.record, verdict);
}

/** Today it would be another call than the one that was approved. */
export const notAsApproved = ({ record }: Call, reason: string, detail: string): Outcome => ({
  kind: 'not_as_approved',
  reason,
  detail,
  call: record,
});
