/** Approving a held call by passkey (specification, Passkeys, sign/finish). */

import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import { evidenceOfPasskey, statusAt } from '../../audit/approval-state.ts';
import type { Changing } from '../../audit/record-change.ts';
import { mustSignInAgain } from '../../auth/roles-by-groups.ts';
import type { Broker, Uses } from '../../broker.ts';
import type { PasskeyDeciders } from '../../policy/passkey-deciders.ts';
import { findSignableApproval, listSigningPasskeys, type SignableApproval, usePasskey } from '../../store/passkeys.ts';
import type { PasskeyTable } from '../../store/tables/approvals.ts';
import { type Decided, decideHeldIf } from '../decide.ts';
import type { Replays } from '../replay.ts';
import type { AssertionBegun } from './assertion.ts';
import { issueChallenge, judgeChallenge, subjectOf } from './challenge.ts';
import { readClientData, relyingPartyOf } from './client-data.ts';
import { disableCloned, isUsed, noteRestoredCounter } from './counter.ts';
import { requestOptions } from './options.ts';
import { type Asserted, type AssertionRefused, verifyAssertion } from './verify.ts';

export type Signed =
  | Exclude<Decided, { kind: 'changed' | 'already_decided' }>
  | { kind: 'already_decided' }
  | AssertionRefused;

const unverified = (detail: string): Signed => ({ kind: 'unverified', detail });

/** The same sentence for all cases, so that it does not reveal existing passkeys. */
const NO_PASSKEY = "This is no active passkey of the agent's owner.";

export type SigningBegun = Extract<AssertionBegun, { kind: 'begun' | 'changed' | 'not_found' }>;

/**
 * Returns options for approving a held call with a passkey of its agent's owner. `not_found`: no pending call with this id can be approved by
 * passkey. `shown`: hash of the request that was shown; required for a corrected call, so that an owner signs only what they were shown.
 */
export async function beginSigning(
  broker: Pick<Broker, 'baseUrl' | 'fleetRun' | 'clock' | 'store' | 'vault'>,
  approvalId: string,
  shown: string | undefined,
): Promise<SigningBegun> {
  const { approval, passkeys } = await signingPasskeys(broker, approvalId);
  if (!approval || passkeys.length === 0 || statusAt(approval, broker.clock()) !== 'pending')
    return { kind: 'not_found' };
  const { id, request_hash: requestHash } = approval;
  if (shown === undefined ? approval.corrected_at !== null : shown !== requestHash)
    return { kind: 'changed', requestHash };
  const options = await requestOptions({
    challenge: await issueChallenge(broker, { purpose: 'sign', id, requestHash }),
    rp: relyingPartyOf(broker),
    passkeys,
    requireUserVerification: approval.require_user_verification === 1,
  });
  return { kind: 'begun', options };
}

/**
 * Whether a pending call can be approved by passkey (without revealing which passkeys exist, or whose), and who may decide it by passkey without a
 * session.
 */
export async function passkeysFor(
  broker: Pick<Broker, 'store' | 'clock'>,
  approvalId: string,
): Promise<{ canSign: boolean; deciders: PasskeyDeciders }> {
  const { approval, passkeys } = await signingPasskeys(broker, approvalId);
  return { canSign: passkeys.length > 0, deciders: approval?.passkey_deciders ?? 'default' };
}

async function signingPasskeys(broker: Pick<Broker, 'store' | 'clock'>, approvalId: string) {
  const approval = await findSignableApproval(broker.store.db, approvalId);
  return { approval, passkeys: approval ? await passkeysNow(broker, approval) : [] };
}

const passkeysNow = async (
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  approval: SignableApproval,
): Promise<PasskeyTable[]> => (mustSignInAgain(approval, clock()) ? [] : await listSigningPasskeys(store.db, approval));

/**
 * Approves the call that the challenge names. The approval and the passkey's counter are updated in one transaction; the replay then starts in the
 * background. When it throws AuditUnavailable, nothing was decided.
 */
export async function approveByPasskey(
  services: Changing & { replays: Replays } & Uses<'baseUrl' | 'fleetRun' | 'vault'>,
  response: AuthenticationResponseJSON,
  ids: { correlationId: string },
): Promise<Signed> {
  const { broker } = services;
  const { db } = broker.store;
  const rp = relyingPartyOf(broker);
  const clientData = readClientData(response.response.clientDataJSON, 'webauthn.get', rp);
  if (typeof clientData === 'string') return unverified(clientData);
  const { challenge } = clientData;
  const subject = subjectOf(challenge);
  if (subject?.purpose !== 'sign') return unverified('The challenge is not one for an approval.');
  const approval = await findSignableApproval(db, subject.id);
  if (!approval) return { kind: 'not_found' };
  const status = statusAt(approval, broker.clock());
  if (status === 'expired') return { kind: 'expired' };
  if (status !== 'pending') return { kind: 'already_decided' };
  const state = await judgeChallenge(broker, challenge, {
    ...subject,
    purpose: 'sign',
    requestHash: approval.request_hash,
  });
  if (state === 'expired') return { kind: 'challenge_expired' };
  if (state === 'foreign') return unverified('The challenge is not one for this request.');
  const passkey = (await passkeysNow(broker, approval)).find((one) => one.credential_id === response.id);
  if (!passkey) return unverified(NO_PASSKEY);
  const requireUserVerification = approval.require_user_verification === 1;
  const asserted = await verifyAssertion(response, passkey, { challenge, rp, requireUserVerification });
  if (!asserted.ok) return unverified(asserted.detail);
  return await decide(services, approval, passkey, asserted, ids);
}

async function decide(
  services: Changing & { replays: Replays } & Uses<'vault'>,
  approval: SignableApproval,
  passkey: PasskeyTable,
  asserted: Asserted,
  ids: { correlationId: string },
): Promise<Signed> {
  const { counter } = asserted;
  const owner = { id: approval.owner_id, organisation_id: approval.organisation_id };
  const decided = await decideHeldIf(
    services,
    owner,
    approval.id,
    {
      status: 'approved',
      how: 'passkey',
      passkey: evidenceOfPasskey(passkey, asserted),
      requestHash: approval.request_hash,
    },
    ids,
    // Runs after the decision, which succeeds only once: a repeated assertion therefore counts as too late, and not as a sign of a cloned passkey.
    async (tx) => await usePasskey(tx, passkey, { counter, at: services.broker.clock(), agentUuid: approval.agent_id }),
  );
  const event = { agent: { id: approval.agent_id, agent_id: approval.agent_public_id }, approvalId: approval.id };
  if (isUsed(decided)) await noteRestoredCounter(services, passkey, counter, event, ids);
  if (decided.kind === 'changed') return unverified('The challenge is not one for this request.');
  if (decided.kind !== 'undone') return decided;
  return (await disableCloned(services, passkey, counter, event, ids))
    ? { kind: 'counter_regression' }
    : unverified(NO_PASSKEY);
}
