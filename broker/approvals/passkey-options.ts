/** What browsers are asked for: options for `navigator.credentials` as JSON (WebAuthn sections 5.4 and 5.5). */
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  type PublicKeyCredentialCreationOptionsJSON,
  type PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server';
import { COSEALG } from '@simplewebauthn/server/helpers';
import type { OwnerTable, PasskeyTable } from '../store/schema.ts';
import type { RelyingParty } from './passkey-client-data.ts';

/** Named, because what the library offers by itself depends on what the runtime can do. */
export const ALGORITHMS: readonly number[] = [COSEALG.ES256, COSEALG.EdDSA, COSEALG.RS256];

const TIMEOUT_MS = 60_000;

type Asked = {
  challenge: Buffer;
  rp: RelyingParty;
  passkeys: readonly PasskeyTable[];
  requireUserVerification: boolean;
};

/** The user handle of an owner: their uuid, which says nothing about them (WebAuthn section 14.6.1). */
export const userHandleOf = (ownerId: string): Buffer => Buffer.from(ownerId.replaceAll('-', ''), 'hex');

const described = ({ credential_id, transports }: PasskeyTable) => ({
  id: credential_id,
  transports: JSON.parse(transports) as string[],
});

const wanted = (required: boolean): 'required' | 'preferred' => (required ? 'required' : 'preferred');

/** To make a credential for an owner on an authenticator that has none of theirs yet. */
export function creationOptions(owner: OwnerTable, asked: Asked): Promise<PublicKeyCredentialCreationOptionsJSON> {
  return generateRegistrationOptions({
    rpName: asked.rp.name,
    rpID: asked.rp.id,
    userID: new Uint8Array(userHandleOf(owner.id)),
    userName: owner.email,
    userDisplayName: owner.email,
    challenge: new Uint8Array(asked.challenge),
    timeout: TIMEOUT_MS,
    attestationType: 'none',
    excludeCredentials: asked.passkeys.map(described),
    authenticatorSelection: { residentKey: 'preferred', userVerification: wanted(asked.requireUserVerification) },
    supportedAlgorithmIDs: [...ALGORITHMS],
  });
}

/** To sign a challenge with one of these passkeys. */
export function requestOptions(asked: Asked): Promise<PublicKeyCredentialRequestOptionsJSON> {
  return generateAuthenticationOptions({
    rpID: asked.rp.id,
    challenge: new Uint8Array(asked.challenge),
    timeout: TIMEOUT_MS,
    allowCredentials: asked.passkeys.map(described),
    userVerification: wanted(asked.requireUserVerification),
  });
}
