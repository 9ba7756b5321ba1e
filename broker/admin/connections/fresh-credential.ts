/** Opens a connection's credential for a request that an owner starts; an expired token is refreshed first. */

import type { Credential } from '../../calls/credentials.ts';
import { type CallCredential, isDue, isRequest, renewerOf, type TokenServices } from '../../calls/token-renewal.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import { isExpired, isJustIssued } from '../../token-source/access-token.ts';
import type { Installation } from '../../token-source/app-installation.ts';
import { tokenRequestAt } from '../../token-source/token-request.ts';

/**
 * `installation`: the App's installation that the credential belongs to. `another`: gets another token, to be called once and only after the
 * platform refused this one (401), as a call does; absent when there can be none. `detail`: why there is no credential, and what an owner can do.
 */
export type FreshCredential =
  | { ok: true; credential: Credential; installation?: Installation; another?: () => Promise<FreshCredential> }
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
    return none(CONSENT_OVER);
  const installation = isRequest(stored) && stored.request.kind === 'app' ? stored.request.installation : undefined;
  const { token } = current;
  const another = async (): Promise<FreshCredential> => {
    const fresh = await renew?.(token, true);
    if (fresh?.kind === 'none') return none(fresh.forwarded.detail);
    if (fresh === undefined || fresh.credential.token?.lapsed) return none(CONSENT_OVER);
    return { ok: true, credential: fresh.credential, ...(installation && { installation }) };
  };
  // A 401 to a token that was issued just now is not about the token.
  const canRenew = token?.refreshable && !isJustIssued(token, services.broker.clock());
  return { ok: true, credential: current, ...(installation && { installation }), ...(canRenew && { another }) };
}

const CONSENT_OVER = 'The consent of this connection was revoked or has expired: connect it again.';

/** What an owner does when the platform refuses the credential: nobody can type a token that the broker gets by itself. */
export function remedyOf({ auth }: Pick<Manifest, 'auth'>): string {
  switch (auth.type) {
    case 'oauth2':
      return 'Connect it again.';
    case 'app':
    case 'client_credentials':
    case 'service_account':
      return 'The token was issued for it, so the platform does not accept such tokens: check auth, and what the client may do there.';
    default:
      return 'Replace it.';
  }
}

function whyNone({ auth, per_person: perPerson }: Manifest): string {
  if (perPerson?.enabled)
    return 'Each person gives their own token for this connection, so it has no token to test the platform with.';
  return auth.type === 'oauth2'
    ? 'The connection is not connected yet: connect it in the console, under Connections.'
    : 'The connection has no secret yet: give it one.';
}
