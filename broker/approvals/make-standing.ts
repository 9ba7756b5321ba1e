/** Creates a standing approval in the transaction of the approval that it comes with. */
import type { Broker } from '../broker.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { hashOfTerms, sealTerms } from '../facts/standing-terms.ts';
import type { Decision } from '../store/decisions.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { findOrganisation } from '../store/organisations.ts';
import { countStanding, putStandingApproval } from '../store/standing-approvals.ts';
import type { Db } from '../store/store.ts';
import { type Offering, standingOffer } from './standing-offer.ts';
import { type CheckedStanding, checkStanding, type StandingRequest } from './standing-request.ts';

/** Limit of standing approvals in force per agent. */
const MAX_STANDING = 100;

/** `no_standing`: `detail` gives the reason, and nothing was decided. `needs_passkey`: the organisation requires a passkey. */
export type PreparedStanding =
  | { kind: 'ready'; ready: CheckedStanding }
  | { kind: 'no_standing'; detail: string }
  | { kind: 'needs_passkey' }
  | { kind: 'not_found' };

/** Validates the standing approval that is requested with an approval. `byPasskey`: a passkey of whoever decides has signed it. */
export async function prepareStanding(
  services: Offering,
  { organisationId, approvalId, byPasskey }: { organisationId: string; approvalId: string; byPasskey: boolean },
  asked: StandingRequest,
): Promise<PreparedStanding> {
  const { store, clock } = services.broker;
  const held = await findHeldCall(store.db, organisationId, approvalId);
  if (!held) return { kind: 'not_found' };
  const organisation = await findOrganisation(store.db, organisationId);
  if (organisation?.require_user_verification === 1 && !byPasskey) return { kind: 'needs_passkey' };
  const offer = await standingOffer(services, held);
  if (!offer.possible) return { kind: 'no_standing', detail: offer.why };
  if ((await countStanding(store.db, organisationId, held.agent_id, clock())) >= MAX_STANDING)
    return {
      kind: 'no_standing',
      detail: `This agent has ${MAX_STANDING} standing approvals already. Revoke those that it does not need.`,
    };
  const ready = checkStanding(asked, offer, clock());
  return typeof ready === 'string' ? { kind: 'no_standing', detail: ready } : { kind: 'ready', ready };
}

/** The part that is recorded in the audit row and in the receipt of the decision. It contains no value of the call. */
export type MadeStanding = {
  id: string;
  count: number;
  until: string;
  session: boolean;
  free: { member: string; at_most?: number }[];
  terms_hash: string;
};

/** Returns the standing approval in the form that is recorded. */
export function recordedStanding({ terms, uses, expiresAt }: CheckedStanding, now: number): MadeStanding {
  return {
    id: uuidv7(now),
    count: uses,
    until: new Date(expiresAt).toISOString(),
    session: terms.session,
    free: terms.free.map(({ member, atMost }) => ({ member, ...(atMost !== undefined && { at_most: atMost }) })),
    terms_hash: hashOfTerms(terms),
  };
}

/** Stores the standing approval. It is in force once the transaction is committed. */
export async function putStanding(
  tx: Db,
  broker: Pick<Broker, 'vault'>,
  held: HeldCall,
  { ready, made, decision }: { ready: CheckedStanding; made: MadeStanding; decision: Decision },
): Promise<void> {
  const { terms, uses, expiresAt, sentence } = ready;
  const { basis, session } = terms;
  const ref = { organisation_id: held.organisation_id, id: made.id };
  await putStandingApproval(tx, {
    ...ref,
    agent_id: basis.agentId,
    platform_id: basis.platformId,
    connection_id: basis.connectionId ?? '',
    grant_id: String(basis.grant.id),
    scope: basis.scope,
    approval_id: held.id,
    session_id: session ? basis.sessionId : null,
    uses,
    expires_at: expiresAt,
    decided_on: JSON.stringify({
      policy: basis.policy,
      guardrails: basis.guardrails,
      manifest: basis.manifest,
      holds: basis.holds,
    }),
    terms: sealTerms(broker, ref, { ...terms, sentence }),
    terms_hash: made.terms_hash,
    decided_by: decision.by,
    decided_how: decision.how,
    decided_with: decision.with,
    created_at: decision.at,
  });
}
