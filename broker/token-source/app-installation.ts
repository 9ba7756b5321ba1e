/** Which tokens of an App are meant. */

import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import type { Manifest } from '../platforms/manifest.ts';

/** The App, and which of its installations. */
export type Installation = {
  organisationId: string;
  platformId: string;
  connectionId: string;
  baseUrl: string;
  /** Headers that go with every request to the platform. */
  headers: Readonly<Record<string, string>>;
  appId: string;
  installationId: string;
  /** Another text each time that the connection is given an installation, be it the same: what was got before is revoked then. */
  given: string;
};

/** What a connection to an App holds: no credential, but the installation of which tokens are got. */
export type GivenInstallation = Pick<Installation, 'installationId' | 'given'>;

/** What a token may be used for. Absent: whatever the installation may be used for. */
export type AppLimits = {
  /** The one repository. */
  repository?: { owner: string; name: string };
  permissions?: Readonly<Record<string, string>>;
};

/** The installation that a connection was given. @throws Error where the platform takes no tokens of an App */
export function installationAt(
  place: Pick<Installation, 'organisationId' | 'platformId' | 'connectionId'>,
  { auth, base_url: baseUrl, headers = {} }: Manifest,
  { installationId, given }: GivenInstallation,
): Installation {
  if (auth.type !== 'app') throw new Error(`platform ${place.platformId} takes no tokens of an App`);
  return { ...place, baseUrl, headers, appId: auth.app_id, installationId, given };
}

/** One text for everything that makes a token another one. A hash, because it is part of a key in the store. */
export function purposeOf({ baseUrl, appId, installationId, given }: Installation, limits: AppLimits): string {
  const { repository, permissions } = limits;
  const name = repository && `${repository.owner}/${repository.name}`.toLowerCase();
  return sha256Hex(canonicalJson([baseUrl, appId, installationId, given, name ?? null, permissions ?? null]));
}
