/** Approves or denies a held call by passkey: everybody who may decide in the console may use their passkey. */

import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import { evidenceOfPasskey } from '../../audit/approval-state.ts';
import type { Changing } from '../../audit/record-change.ts';
import { mustSignInAgain } from '../../auth/roles-by-groups.ts';
import type { Uses } from '../../broker.ts';
import { passkeyDecidersIn } from '../../policy/passkey-deciders.ts';
import { DECIDING, findSignableApproval, usePasskey } from '../../store/passkeys.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import { type Decided, decideHeldIf } from '../decide.ts';
import { type PreparedStanding, prepareStanding } from '../make-standing.ts';
import type { Replays } from '../replay.ts';
import type { Offering } from '../standing-offer.ts';
import { hashOfStanding, type StandingRequest } from '../standing-request.ts';
import { NOT_VERIFIED, verifyAnybody } from './assertion.ts';
import { judgeChallenge } from './challenge.ts';
import { disableCloned, isUsed, noteRestoredCounter } from './counter.ts';
import type { AssertionRefused } from './verify.ts';

export type DecidedByPasskey =
  | (Extract<Decided, { kind: 'decided' }> & { owner: OwnerTable })
  | Exclude<Decided, { kind: 'decided' }>
  | AssertionRefused
  /** The standing approval that was requested along with the approval cannot be made. */
  | Exclude<PreparedStanding, { kind: 'ready' }>
  /** The passkey belongs to somebody who may not decide this call. */
  | { kind: 'forbidden'; why: 'role' | 'not_agents_owner' | 'sign_in_again' };

/**
 * The decision, and the note to the agent. `session`: the owner whose passkey is required, for this approval, and for the request with this hash if
 * given; undefined: the passkey alone identifies the person. `elsewhere`: owners sign in at an identity provider; without a session the organisation
 * then decides whether others than the agent's owner may.
 */
export type DecidingBy = {
  purpose: 'approve' | 'deny';
  note: string | undefined;
  /** A standing approval that is made along with the decision: the challenge has to be bound to exactly these terms. */
  standing?: StandingRequest | undefined;
  session?: { owner: OwnerTable; approvalId: string; requestHash: string | undefined };
  elsewhere?: boolean;
};

const unverified = (detail: string): DecidedByPasskey => ({ kind: 'unverified', detail });

const NOT_FOR_THIS = 'The challenge is for another decision, request or note.';

/**
 * Makes the decision for which the challenge was issued, and records the assertion as evidence. When it throws AuditUnavailable, nothing was decided.
 */
export async function decideByPasskey(
  services: Changing & Offering & { replays: Replays } & Uses<'baseUrl' | 'fleetRun'>,
  response: AuthenticationResponseJSON,
  { purpose, note, standing, session, elsewhere = false }: DecidingBy,
  ids: { correlationId: string },
): Promise<DecidedByPasskey> {
  const { broker } = services;
  const verified = await verifyAnybody(broker, response);
  if (!verified.ok) return unverified(verified.detail);
  const { challenge, said, passkey, owner, asserted } = verified;
  const { id } = said;
  const signed = standing ? 'standing' : purpose;
  if (said.purpose !== signed || (session && session.approvalId !== id)) return unverified(NOT_FOR_THIS);
  if (session && session.owner.id !== owner.id)
    return unverified('This passkey does not belong to the person who is signed in here.');
  const approval = await findSignableApproval(broker.store.db, id);
  // The same result for another organisation's call as for an unknown id, so that ids do not leak.
  if (!approval || approval.organisation_id !== owner.organisation_id) return unverified(NOT_FOR_THIS);
  const { organisation_id: organisationId, request_hash: requestHash } = approval;
  if (session?.requestHash !== undefined && session.requestHash !== requestHash)
    return { kind: 'changed', requestHash };
  const subject = { id, organisationId, requestHash, note };
  const state = await judgeChallenge(
    broker,
    challenge,
    standing ? { purpose: 'standing', ...subject, termsHash: hashOfStanding(standing) } : { purpose, ...subject },
  );
  if (state === 'expired') return { kind: 'challenge_expired' };
  if (state === 'foreign') return unverified(NOT_FOR_THIS);
  if (!DECIDING.includes(owner.role)) return { kind: 'forbidden', why: 'role' };
  if (!session && mustSignInAgain(owner, broker.clock())) return { kind: 'forbidden', why: 'sign_in_again' };
  const deciders = passkeyDecidersIn(approval.passkey_deciders, elsewhere);
  if (!session && deciders === 'agents_owner' && approval.owner_id !== owner.id)
    return { kind: 'forbidden', why: 'not_agents_owner' };
  const place = { organisationId, approvalId: id, byPasskey: true };
  const prepared = standing && (await prepareStanding(services, place, standing));
  if (prepared && prepared.kind !== 'ready') return prepared;
  const decided = await decideHeldIf(
    services,
    owner,
    id,
    {
      status: purpose === 'approve' ? 'approved' : 'denied',
      how: 'passkey',
      passkey: evidenceOfPasskey(passkey, asserted),
      ...(note !== undefined && { note }),
      requestHash,
      ...(prepared && { standing: prepared.ready }),
    },
    ids,
    // Runs after the decision, which succeeds only once: a repeated assertion therefore counts as too late, and not as a sign of a cloned passkey.
    async (tx) => await usePasskey(tx, passkey, { counter: asserted.counter, at: broker.clock(), may: 'decide' }),
  );
  const about = { agent: { id: approval.agent_id, agent_id: approval.agent_public_id }, approvalId: id };
  if (isUsed(decided)) await noteRestoredCounter(services, passkey, asserted.counter, about, ids);
  if (decided.kind === 'decided') return { ...decided, owner };
  if (decided.kind === 'changed') return unverified(NOT_FOR_THIS);
  if (decided.kind !== 'undone') return decided;
  return (await disableCloned(services, passkey, asserted.counter, about, ids))
    ? { kind: 'counter_regression' }
    : unverified(NOT_VERIFIED);
}
