/** Identifies the tokens of an App's installation. */

import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { Manifest } from '../platforms/manifest.ts';

/** An App's installation, and the connection that uses it. */
export type Installation = {
  organisationId: string;
  platformId: string;
  connectionId: string;
  baseUrl: string;
  /** Headers of every request to the platform. */
  headers: Readonly<Record<string, string>>;
  appId: string;
  installationId: string;
  /** Changes each time that the connection is given an installation, even the same one: earlier tokens are revoked then. */
  given: string;
};

/** What an App connection stores: no credential, but the installation whose tokens are requested. */
export type GivenInstallation = Pick<Installation, 'installationId' | 'given'>;

/** Limits of a token. A missing member: no limit beyond the installation's own. */
export type AppLimits = {
  /** The only repository. */
  repository?: { owner: string; name: string };
  permissions?: Readonly<Record<string, string>>;
};

/** Returns the installation of a connection. @throws Error when the platform does not use an App */
export function installationAt(
  place: Pick<Installation, 'organisationId' | 'platformId' | 'connectionId'>,
  { auth, base_url: baseUrl, headers = {} }: Manifest,
  { installationId, given }: GivenInstallation,
): Installation {
  if (auth.type !== 'app') throw new Error(`platform ${place.platformId} uses no tokens of an App`);
  return { ...place, baseUrl, headers, appId: auth.app_id, installationId, given };
}

/** Returns a key that differs whenever the token would. Hashed, because it is part of a key in the store. */
export function purposeOf({ baseUrl, appId, installationId, given }: Installation, limits: AppLimits): string {
  const { repository, permissions } = limits;
  const name = repository && `${repository.owner}/${repository.name}`.toLowerCase();
  return sha256Hex(canonicalJson([baseUrl, appId, installationId, given, name ?? null, permissions ?? null]));
}
