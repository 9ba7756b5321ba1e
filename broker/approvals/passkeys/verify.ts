/** Verifies responses of authenticators (WebAuthn sections 7.1 and 7.2). Callers check the owner of the credential. */
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { decodeBase64url } from '../../crypto/strict-decoding.ts';
import type { PasskeyTable } from '../../store/tables/approvals.ts';
import type { RelyingParty } from './client-data.ts';
import { ALGORITHMS, loadWebAuthn, userHandleOf } from './options.ts';

type Refused = { ok: false; detail: string };

const refused = (detail: string): Refused => ({ ok: false, detail });

const NOT_OURS = 'The response of the authenticator is not valid: wrong signature, another site, or nobody touched it.';
const UNVERIFIED = 'The authenticator has to verify you here, by fingerprint, face or PIN, and it did not.';

/** Why an assertion was refused: its challenge has expired, it is not valid, or its passkey may have been cloned. */
export type AssertionRefused =
  | { kind: 'challenge_expired' }
  | { kind: 'unverified'; detail: string }
  | { kind: 'counter_regression' };

/** The columns of a passkey that come from its registration. */
export type Enrolled = Pick<PasskeyTable, 'credential_id' | 'public_key' | 'counter' | 'aaguid' | 'synced'>;

/** Verifies a registration. `challenge`: from the client data, already verified. */
export async function verifyRegistration(
  response: RegistrationResponseJSON,
  expected: { challenge: string; rp: RelyingParty; requireUserVerification: boolean },
): Promise<{ ok: true; credential: Enrolled } | Refused> {
  if (!(await isUnattested(response.response.attestationObject)))
    return refused('The authenticator sent an attestation, but none was requested.');
  const { verifyRegistrationResponse } = await loadWebAuthn();
  const verified = await verifyRegistrationResponse({
    response,
    expectedChallenge: expected.challenge,
    expectedOrigin: expected.rp.origin,
    expectedRPID: expected.rp.id,
    requireUserVerification: false,
    supportedAlgorithmIDs: [...ALGORITHMS],
  }).catch(() => undefined);
  if (!verified?.verified) return refused(NOT_OURS);
  const { credential, aaguid, userVerified, credentialDeviceType } = verified.registrationInfo;
  if (credential.id !== response.id) return refused('The id is not that of the credential that was made.');
  if (expected.requireUserVerification && !userVerified) return refused(UNVERIFIED);
  return {
    ok: true,
    credential: {
      credential_id: credential.id,
      public_key: Buffer.from(credential.publicKey),
      counter: credential.counter,
      aaguid,
      synced: credentialDeviceType === 'multiDevice' ? 1 : 0,
    },
  };
}

/**
 * Whether the attestation is absent or self-attestation. To verify other formats, the library would fetch revocation lists from URLs in the
 * certificate (SSRF).
 */
async function isUnattested(attestationObject: string): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers');
  const bytes = decodeBase64url(attestationObject);
  if (!bytes) return false;
  try {
    const decoded = decodeAttestationObject(new Uint8Array(bytes));
    const format = decoded.get('fmt');
    return format === 'none' || (format === 'packed' && decoded.get('attStmt').get('x5c') === undefined);
  } catch {
    return false;
  }
}

/** The result of a verified assertion. */
export type Asserted = { counter: number; userVerified: boolean };

/** Verifies an assertion. `challenge`: from the client data, already verified. The counter is not checked here. */
export async function verifyAssertion(
  response: AuthenticationResponseJSON,
  passkey: PasskeyTable,
  expected: { challenge: string; rp: RelyingParty; requireUserVerification: boolean },
): Promise<({ ok: true } & Asserted) | Refused> {
  const { userHandle } = response.response;
  if (userHandle !== undefined && userHandle !== userHandleOf(passkey.owner_id).toString('base64url'))
    return refused('The credential belongs to somebody else.');
  const { verifyAuthenticationResponse } = await loadWebAuthn();
  const verified = await verifyAuthenticationResponse({
    response,
    expectedChallenge: expected.challenge,
    expectedOrigin: expected.rp.origin,
    expectedRPID: expected.rp.id,
    requireUserVerification: false,
    credential: {
      id: passkey.credential_id,
      publicKey: new Uint8Array(passkey.public_key),
      // Disables the library's counter check, which runs before the signature check: anybody could make a passkey look cloned.
      counter: 0,
    },
  }).catch(() => undefined);
  if (!verified?.verified) return refused(NOT_OURS);
  const { newCounter, userVerified, credentialDeviceType } = verified.authenticationInfo;
  // Whether a credential is synced never changes (WebAuthn section 6.1.3).
  if ((credentialDeviceType === 'multiDevice') !== (passkey.synced === 1)) return refused(NOT_OURS);
  if (expected.requireUserVerification && !userVerified) return refused(UNVERIFIED);
  return { ok: true, counter: newCounter, userVerified };
}
