/** Describes a token that the broker can request without a person: everything that distinguishes one token from another. */
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Manifest } from '../platforms/manifest.ts';
import { GOOGLE_TOKEN_ENDPOINT } from '../platforms/token-auth.ts';
import {
  type AppLimits,
  type GivenInstallation,
  type Installation,
  installationAt,
  purposeOf,
} from './app-installation.ts';

/** The secret of a connection, by names of its parts. */
export type GivenParts = {
  parts: Readonly<Record<string, Secret>>;
  /** Changes each time that the connection is given a secret. */
  given: string;
};

/** What a connection stores in place of a credential. */
export type Given = GivenInstallation | GivenParts;

type Place = Pick<Installation, 'organisationId' | 'platformId' | 'connectionId'>;
type AuthOf<Type extends Manifest['auth']['type']> = Extract<Manifest['auth'], { type: Type }>;

export type AppTokenRequest = Place & { kind: 'app'; installation: Installation; limits: AppLimits };
/** Client credentials (RFC 6749 §4.4). */
export type ClientTokenRequest = Place & GivenParts & { kind: 'client'; auth: AuthOf<'client_credentials'> };
/** JWT bearer assertion (RFC 7523 §2.1). */
export type AccountTokenRequest = Place &
  GivenParts & { kind: 'account'; auth: AuthOf<'service_account'>; tokenEndpoint: string };

export type TokenRequest = AppTokenRequest | ClientTokenRequest | AccountTokenRequest;

/**
 * Describes the token that a call on this connection needs. `limits`: only for an App's token; others cover all that the manifest requests.
 *
 * @throws Error when the platform uses no such tokens
 */
export function tokenRequestAt(place: Place, manifest: Manifest, given: Given, limits: AppLimits): TokenRequest {
  const { auth } = manifest;
  if ('installationId' in given)
    return { ...place, kind: 'app', installation: installationAt(place, manifest, given), limits };
  if (auth.type === 'client_credentials') return { ...place, ...given, kind: 'client', auth };
  if (auth.type === 'service_account')
    return { ...place, ...given, kind: 'account', auth, tokenEndpoint: auth.token_endpoint ?? GOOGLE_TOKEN_ENDPOINT };
  throw new Error(`platform ${place.platformId} uses no tokens that are issued without a person`);
}

/** Returns a key that differs whenever the token would. Hashed, because it is part of a key in the store. */
export const purposeOfRequest = (request: TokenRequest): string =>
  request.kind === 'app'
    ? purposeOf(request.installation, request.limits)
    : sha256Hex(canonicalJson([request.kind, request.auth, request.given]));
