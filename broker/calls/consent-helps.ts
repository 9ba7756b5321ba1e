/**
 * Handles outcomes that need more consent: raises an access request, names the pending one, or begins the consent of a person
 * (specification, Governed call, 409 and 412).
 */
import { askConsent, pendingConsent } from '../approvals/ask-consent.ts';
import type { Outcome, OutcomeOf } from '../audit/outcome.ts';
import { isEntitled, NOT_ON_PLAN } from '../entitlement.ts';
import { beginConsent } from '../people/consents.ts';
import type { Call } from './call.ts';
import type { CallServices } from './call-services.ts';

/** Returns what to do once this outcome is recorded: it adds where to go to the outcome. Undefined when no consent helps. */
export function consentHelps(
  services: CallServices,
  call: Call,
  outcome: Outcome,
): (() => Promise<Outcome>) | undefined {
  if (outcome.kind === 'needs_consent') {
    const { scope } = outcome;
    const asking = { ...call, action: { ...call.action, scope } };
    return async () => ({ ...outcome, ...(await askConsent(services, asking)) });
  }
  if (outcome.kind === 'reauth_needed') return async () => ({ ...outcome, ...(await pendingConsent(services, call)) });
  // A git error line has no room for a consent link, which is valid for half an hour.
  return outcome.kind === 'consent_required' && call.git === undefined
    ? () => withConsent(services, call, outcome)
    : undefined;
}

type ConsentRequired = OutcomeOf<'consent_required'>;

/** Adds the consent that the person has to give, if consent helps. The refusal itself is already recorded. */
async function withConsent(
  services: CallServices,
  { who, action, caller, record }: Call,
  outcome: ConsentRequired,
): Promise<ConsentRequired> {
  const { connectionId } = record;
  if (!isEntitled(services.broker, record.organisationId, 'per_person_tokens'))
    return { ...outcome, detail: NOT_ON_PLAN.per_person_tokens };
  if (outcome.awaits || connectionId === null || !caller || 'reason' in caller || !caller.who) return outcome;
  try {
    const begun = await beginConsent(services, who, { platformId: action.platform, connectionId }, caller.who);
    return begun === 'too_many' ? { ...outcome, awaits: 'other_consents' } : { ...outcome, consent: begun };
  } catch (error) {
    services.broker.log.error({ err: error, agent: who.agent.agent_id }, 'could not begin the consent of a person');
    return outcome;
  }
}
