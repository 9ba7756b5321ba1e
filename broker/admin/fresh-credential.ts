/** Opens a connection's credential for a request that an owner starts; an expired token is refreshed first. */

import type { Credential } from '../calls/credentials.ts';
import { type CallCredential, isDue, isRequest, renewerOf, type TokenServices } from '../calls/token-renewal.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { ConnectionTable } from '../store/tables/connections.ts';
import { isExpired } from '../token-source/access-token.ts';
import type { Installation } from '../token-source/app-installation.ts';
import { tokenRequestAt } from '../token-source/token-request.ts';

/** `detail`: why there is none, and what an owner can do. */
/** `installation`: the App's installation that the credential belongs to. */
export type FreshCredential =
  | { ok: true; credential: Credential; installation?: Installation }
  | { ok: false; detail: string };

/** Opens the credential. Sends requests only to the token issuer, and only when a token is due. */
export async function freshCredential(
  services: TokenServices,
  connection: ConnectionTable,
  manifest: Manifest,
): Promise<FreshCredential> {
  const none = (detail: string): FreshCredential => ({ ok: false, detail });
  const { organisation_id: organisationId, platform_id: platformId, id: connectionId } = connection;
  const opened = services.credentials.open(organisationId, connection, manifest.auth);
  if (opened === undefined) return none(whyNone(manifest));
  if (opened === 'unreadable') return none('The stored secret cannot be opened: replace it.');
  const place = { organisationId, platformId, connectionId };
  // A test needs no more than the minimal permission.
  const limits = manifest.app_permissions === undefined ? {} : { permissions: { metadata: 'read' } };
  const stored: CallCredential =
    'secret' in opened ? opened : { request: tokenRequestAt(place, manifest, opened, limits) };
  let current = isRequest(stored) ? undefined : stored;
  const now = services.broker.clock();
  const renew = renewerOf(services, { organisationId, platformId, manifest, connection }, stored);
  if (renew !== undefined && isDue(current?.token, now)) {
    const fresh = await renew(current?.token, false);
    if (fresh.kind === 'credential') current = fresh.credential;
    else if (!fresh.isFinal || isRequest(stored)) return none(fresh.forwarded.detail);
  }
  if (current === undefined || (current.token && isExpired(current.token, services.broker.clock())))
    return none('The consent of this connection was revoked or has expired: connect it again.');
  const installation = isRequest(stored) && stored.request.kind === 'app' ? stored.request.installation : undefined;
  return { ok: true, credential: current, ...(installation && { installation }) };
}

function whyNone({ auth, per_person: perPerson }: Manifest): string {
  if (perPerson?.enabled)
    return 'Each person gives their own token for this connection, so it has no token to test the platform with.';
  return auth.type === 'oauth2'
    ? 'The connection is not connected yet: connect it in the console, under Connections.'
    : 'The connection has no secret yet: give it one.';
}
