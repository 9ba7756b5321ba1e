/** The key pair of a registered agent: made at the approval, the private half kept sealed until it is collected. */
import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { Broker } from '../broker.ts';
import { type AgentPublicKey, parsePublicKey } from '../crypto/public-key.ts';
import { Secret } from '../crypto/secret.ts';
import type { RegistrationRef } from '../store/registrations.ts';
import type { RegistrationTable } from '../store/schema.ts';

const BITS = 2048;

/** A new RSA key pair: the private half as PKCS#8 PEM. It takes a tenth of a second, on another thread. */
export async function makeKeyPair(): Promise<{ publicKey: AgentPublicKey; privatePem: Secret }> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: BITS,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const parsed = parsePublicKey(publicKey);
  if (!parsed.ok) throw new Error(`A key pair that was just made is none: ${parsed.error}`);
  return { publicKey: parsed, privatePem: new Secret(privateKey) };
}

const placeOf = ({ organisation_id: organisationId, id: rowId }: RegistrationRef) => ({
  table: 'registrations' as const,
  organisationId,
  rowId,
});

export function sealPrivateKey({ vault }: Pick<Broker, 'vault'>, ref: RegistrationRef, pem: Secret): Buffer {
  return vault.seal(placeOf(ref), pem.reveal());
}

/** Throws SealError when what is stored was altered or is another row's. */
export function openPrivateKey(
  { vault }: Pick<Broker, 'vault'>,
  registration: RegistrationRef & { private_key: NonNullable<RegistrationTable['private_key']> },
): Secret {
  return new Secret(vault.open(placeOf(registration), registration.private_key).toString('utf8'));
}
