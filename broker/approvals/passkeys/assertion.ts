/**
 * Assertions by any passkey of this broker: for signing in, for changing one's passkeys, and for one decision. No credentials are listed, so that the
 * options do not reveal who has enrolled one. The passkey has to be discoverable, and its authenticator has to verify its user.
 */
import type { AuthenticationResponseJSON, PublicKeyCredentialRequestOptionsJSON } from '@simplewebauthn/server';
import { statusAt } from '../../audit/approval-state.ts';
import type { Broker } from '../../broker.ts';
import { findOwner } from '../../store/organisations.ts';
import { findActivePasskey, findSignableApproval } from '../../store/passkeys.ts';
import type { ApprovalTable, PasskeyTable } from '../../store/tables/approvals.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import { issueChallenge, subjectOf, UNKNOWN_PERSON } from './challenge.ts';
import { type RelyingParty, readClientData, relyingPartyOf } from './client-data.ts';
import { requestOptions, userHandleOf } from './options.ts';
import { type Asserted, verifyAssertion } from './verify.ts';

/** `note`: the owner's note to the agent; the challenge is bound to it. `requestHash`: hash of the request that was shown. */
export type AssertionAsk =
  | { purpose: 'sign-in' }
  | { purpose: 'add-passkey' }
  | { purpose: 'remove-passkey'; passkeyId: string }
  | { purpose: 'approve' | 'deny'; approvalId: string; requestHash: string; note: string | undefined }
  | { purpose: 'standing'; approvalId: string; requestHash: string; note: string | undefined; termsHash: string };

export type AssertionBegun =
  | { kind: 'begun'; options: PublicKeyCredentialRequestOptionsJSON }
  | { kind: 'not_found' }
  | { kind: 'changed'; requestHash: string }
  | { kind: 'already_decided'; status: ApprovalTable['status'] }
  | { kind: 'expired' };

export type Purpose = AssertionAsk['purpose'];

/** Returns options for an assertion for this purpose, by any passkey. Stores nothing. */
export async function beginAssertion(
  broker: Pick<Broker, 'baseUrl' | 'fleetRun' | 'clock' | 'store' | 'vault'>,
  ask: AssertionAsk,
): Promise<AssertionBegun> {
  if (ask.purpose === 'sign-in' || ask.purpose === 'add-passkey')
    return await begun(broker, await issueChallenge(broker, { purpose: ask.purpose, id: UNKNOWN_PERSON }));
  if (ask.purpose === 'remove-passkey')
    return await begun(broker, await issueChallenge(broker, { purpose: ask.purpose, id: ask.passkeyId }));
  const approval = await findSignableApproval(broker.store.db, ask.approvalId);
  if (!approval) return { kind: 'not_found' };
  const status = statusAt(approval, broker.clock());
  if (status === 'expired') return { kind: 'expired' };
  if (status !== 'pending') return { kind: 'already_decided', status };
  const { id, organisation_id: organisationId, request_hash: requestHash } = approval;
  if (ask.requestHash !== requestHash) return { kind: 'changed', requestHash };
  const { note } = ask;
  const subject = { id, organisationId, requestHash, note };
  return await begun(
    broker,
    await issueChallenge(
      broker,
      ask.purpose === 'standing'
        ? { purpose: ask.purpose, ...subject, termsHash: ask.termsHash }
        : { purpose: ask.purpose, ...subject },
    ),
  );
}

const begun = async (broker: Pick<Broker, 'baseUrl'>, challenge: Buffer): Promise<AssertionBegun> => ({
  kind: 'begun',
  options: await requestOptions({
    challenge,
    rp: relyingPartyOf(broker),
    passkeys: [],
    requireUserVerification: true,
  }),
});

/** The same sentence for every problem with the passkey, so that it does not reveal which ones exist. */
export const NOT_VERIFIED =
  'The passkey could not be verified: it may be unknown, removed or disabled here, or was enrolled for another address.';

/** A verified assertion. Whether its challenge was issued here, and for which purpose, is checked later. */
export type Verified = {
  ok: true;
  challenge: string;
  said: { purpose: Purpose; id: string };
  passkey: PasskeyTable;
  owner: OwnerTable;
  asserted: Asserted;
};

const refused = (detail: string) => ({ ok: false, detail }) as const;

/**
 * Verifies an assertion by any active passkey, whose owner must match the user handle of the authenticator (WebAuthn section 7.2, step 6). An unknown
 * credential takes the same steps with a decoy key, so that both take the same time.
 */
export async function verifyAnybody(
  broker: Pick<Broker, 'baseUrl' | 'store'>,
  response: AuthenticationResponseJSON,
): Promise<Verified | { ok: false; detail: string }> {
  const { db } = broker.store;
  const rp = relyingPartyOf(broker);
  const clientData = readClientData(response.response.clientDataJSON, 'webauthn.get', rp);
  if (typeof clientData === 'string') return refused(clientData);
  const { challenge } = clientData;
  const said = subjectOf(challenge);
  if (!said || said.purpose === 'register' || said.purpose === 'sign')
    return refused('The challenge is not one for signing in, for changing passkeys, or for a decision.');
  const passkey = await findActivePasskey(db, response.id);
  const asserted = await assertedBy(response, passkey ?? decoy(response.id), { challenge, rp });
  if (!passkey || !asserted.ok) return refused(asserted.ok ? NOT_VERIFIED : asserted.detail);
  const owner = await findOwner(db, passkey.owner_id);
  if (!owner) return refused(NOT_VERIFIED);
  const { counter, userVerified } = asserted;
  return {
    ok: true,
    challenge,
    said: { ...said, purpose: said.purpose },
    passkey,
    owner,
    asserted: { counter, userVerified },
  };
}

async function assertedBy(
  { response, ...credential }: AuthenticationResponseJSON,
  passkey: PasskeyTable,
  expected: { challenge: string; rp: RelyingParty },
) {
  const { userHandle, ...signed } = response;
  // The user handle is not signed: it is compared afterwards, so that a wrong one takes as long as a wrong signature.
  const asserted = await verifyAssertion({ ...credential, response: signed }, passkey, {
    ...expected,
    requireUserVerification: false,
  });
  if (!asserted.ok || userHandle !== userHandleOf(passkey.owner_id).toString('base64url')) return refused(NOT_VERIFIED);
  return asserted.userVerified
    ? asserted
    : refused('The authenticator has to verify you here, by fingerprint, face or PIN, and it did not.');
}

/** ES256 key in COSE (RFC 9052) of the example in RFC 7515, appendix A.3. */
const PLACEHOLDER_KEY = Buffer.concat([
  Buffer.from('a5010203262001215820', 'hex'),
  Buffer.from('f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU', 'base64url'),
  Buffer.from('225820', 'hex'),
  Buffer.from('x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0', 'base64url'),
]);

/** Stand-in passkey for an unknown credential. */
const decoy = (credentialId: string): PasskeyTable => ({
  organisation_id: UNKNOWN_PERSON,
  id: UNKNOWN_PERSON,
  owner_id: UNKNOWN_PERSON,
  credential_id: credentialId,
  public_key: PLACEHOLDER_KEY,
  counter: 0,
  restored_counter: null,
  transports: '[]',
  device_name: '',
  aaguid: UNKNOWN_PERSON,
  synced: 0,
  discoverable: null,
  status: 'disabled',
  created_at: 0,
  last_used_at: null,
});
