/** Builds options for `navigator.credentials` as JSON (WebAuthn sections 5.4 and 5.5). */
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server';
import { readStored, Texts } from '../../store/stored-json.ts';
import type { PasskeyTable } from '../../store/tables/approvals.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import type { RelyingParty } from './client-data.ts';

/**
 * ES256, EdDSA and RS256 (RFC 9053, RFC 8812). Explicit, because the library's default depends on the
 * runtime.
 */
export const ALGORITHMS: readonly number[] = [-7, -8, -257];

/** Loaded lazily: the library takes 27 MB and a tenth of a second. */
export const loadWebAuthn = () => import('@simplewebauthn/server');

const TIMEOUT_MS = 60_000;

type OptionsInput = {
  challenge: Buffer;
  rp: RelyingParty;
  passkeys: readonly PasskeyTable[];
  requireUserVerification: boolean;
};

/** The user handle of an owner: their uuid, which contains no personal data (WebAuthn section 14.6.1). */
export const userHandleOf = (ownerId: string): Buffer => Buffer.from(ownerId.replaceAll('-', ''), 'hex');

/** How the passkey's authenticator can be reached (WebAuthn section 5.8.4). */
export const transportsOf = ({ id, transports }: Pick<PasskeyTable, 'id' | 'transports'>): string[] =>
  readStored(Texts, transports, `transports of passkey ${id}`);

const described = (passkey: PasskeyTable) => ({ id: passkey.credential_id, transports: transportsOf(passkey) });

const wanted = (required: boolean): 'required' | 'preferred' => (required ? 'required' : 'preferred');

/** Returns options for creating a credential on an authenticator that has none of this owner. */
export async function creationOptions(
  owner: OwnerTable,
  asked: OptionsInput,
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await loadWebAuthn();
  return await generateRegistrationOptions({
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

/** Returns options for signing a challenge with one of these passkeys. */
export async function requestOptions(asked: OptionsInput): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await loadWebAuthn();
  return await generateAuthenticationOptions({
    rpID: asked.rp.id,
    challenge: new Uint8Array(asked.challenge),
    timeout: TIMEOUT_MS,
    allowCredentials: asked.passkeys.map(described),
    userVerification: wanted(asked.requireUserVerification),
  });
}
