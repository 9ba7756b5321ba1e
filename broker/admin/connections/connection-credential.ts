import { Secret } from '../../crypto/secret.ts';
import { SHORTEST_CREDENTIAL } from '../../egress/credential-search/patterns.ts';
import { whyUnsendable } from '../../egress/rest.ts';
import { isSigning } from '../../egress/sign-request.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import {
  isParted,
  type PartedAuth,
  readSecretParts,
  SecretOfParts,
  secretPartsOf,
} from '../../platforms/secret-parts.ts';
import { ACCOUNT_KEY, readRsaKey } from '../../token-source/rsa-key.ts';
import { ChangeRefused } from '../refused.ts';

const TOO_SHORT = `fewer than ${SHORTEST_CREDENTIAL} characters, so it could not be redacted reliably from responses`;

/**
 * Returns why a credential is not accepted for a platform, as a phrase that follows "the secret" and reveals nothing of it; undefined when it is
 * accepted. Credentials that cannot be sent, or could not be redacted from answers, are refused.
 *
 * @param auth of the platform; undefined: not known
 */
export function whyNotCredential(auth: Manifest['auth'] | undefined, given: Secret): string | undefined {
  const secret = given.reveal();
  if (given instanceof SecretOfParts && auth && !isParted(auth))
    return 'is given in parts, and this platform takes a single text';
  if (secret === '') return 'is empty';
  // The number of an App's installation is not secret, so it need not be redacted from answers.
  if (secret.length < SHORTEST_CREDENTIAL && auth?.type !== 'app') return `has ${TOO_SHORT}`;
  const unsendable = auth && whyUnsendable(auth, secret);
  if (unsendable) return unsendable;
  const unfit = auth && isParted(auth) && whyUnfitParts(auth, secret);
  if (unfit) return unfit;
  const [, password = ''] = auth?.type === 'basic' ? (/:(.*)$/s.exec(secret) ?? []) : [];
  return password !== '' && password.length < SHORTEST_CREDENTIAL ? `has a password of ${TOO_SHORT}` : undefined;
}

/** A private key has to be able to sign, and a signing key has to be hard to guess. */
function whyUnfitParts(auth: PartedAuth, secret: string): string | undefined {
  const read = readSecretParts(auth, secret);
  if (!read.ok) return read.problem;
  const { parts } = read;
  if (auth.type === 'service_account') {
    const key = readRsaKey(parts.private_key ?? '', ACCOUNT_KEY);
    return key.ok ? undefined : `has the part private_key, which ${key.problem}`;
  }
  if (!isSigning(auth)) return undefined;
  const short = secretPartsOf(auth)?.find(
    ({ name, open }) => !open && (parts[name]?.length ?? 100) < SHORTEST_CREDENTIAL,
  );
  return short && `has the part ${short.name}, which is of ${TOO_SHORT}`;
}

/** Returns the credential of a connection that is created without one: the number of the installation, where its platform names one. */
export function credentialOf({ auth }: Pick<Manifest, 'auth'>): Secret | undefined {
  return auth.type === 'app' && auth.installation_id !== undefined ? new Secret(auth.installation_id) : undefined;
}

/** Throws ChangeRefused `invalid_request` when the credential is not accepted. */
export function checkCredential({ auth }: Pick<Manifest, 'auth'>, secret: Secret): void {
  const problem = whyNotCredential(auth, secret);
  if (problem) throw new ChangeRefused('invalid_request', `secret: ${problem}.`);
}
