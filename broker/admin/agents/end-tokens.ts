/** Cleans up at an authorization server after a connection was removed, or got another credential. */
import type { Uses } from '../../broker.ts';
import type { OAuthConnections } from '../../oauth-client/oauth-connections.ts';
import { forgetRegistration } from '../../oauth-client/registration.ts';
import type { NotRevoked } from '../../oauth-client/revocations.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { ConnectionTable, UpstreamTokenTable } from '../../store/tables/connections.ts';
import type { PersonTokenTable } from '../../store/tables/people.ts';
import { revokeAppTokens } from '../../token-source/app-revocation.ts';
import { revokeAll } from '../connections/revoke-tokens-at-server.ts';

/**
 * A connection before the change, with the manifest of its platform at that time. `removed`: it was removed, or moved to another platform, together
 * with `people`'s tokens.
 * `appTokens`: cached tokens of an App's installation.
 */
export type FormerConnection = {
  connection: ConnectionTable;
  manifest: Manifest;
  removed: false | { people: readonly PersonTokenTable[] };
  appTokens?: readonly UpstreamTokenTable[];
};

/**
 * Revokes a connection's former tokens, and deletes a registration that is not needed any more: after the transaction that made them unusable here,
 * whatever the server answers. False: it had none, or the server has no revocation endpoint.
 */
export async function endTokens(
  { broker, oauth }: Uses<'clock' | 'log' | 'store' | 'vault' | 'outbound'> & { oauth: OAuthConnections },
  { connection, manifest, removed, appTokens = [] }: FormerConnection,
): Promise<boolean | NotRevoked> {
  const { organisation_id: organisationId, id, platform_id: platformId } = connection;
  await revokeAppTokens(broker, { connection, manifest }, appTokens);
  const people = removed ? removed.people : [];
  const [revoked = false] = await revokeAll({ broker, oauth }, { connection, manifest }, { own: connection, people });
  if (!removed) return revoked;
  // Must be last: it deletes the client's credentials, which revoking needs.
  await forgetRegistration(broker.store.db, { organisationId, platformId, connectionId: id });
  return revoked;
}
