/** What a connection leaves behind at an authorization server when it is removed, or gets another credential. */
import type { Uses } from '../broker.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import { isProblem, type OAuthProblem } from '../oauth-client/problem.ts';
import { forgetRegistration } from '../oauth-client/registration.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { ConnectionTable, UpstreamTokenTable } from '../store/tables/connections.ts';
import type { PersonTokenTable } from '../store/tables/people.ts';
import { revokeAppTokens } from '../token-source/app-revocation.ts';
import { revokeGiven } from './revoke-given.ts';

/**
 * A connection as it was, with the manifest of its platform then. `removed`: it is there no more, or has moved to another platform; with
 * it went `people`'s tokens.
 * `appTokens`: those of an App's installation that were forgotten.
 */
export type FormerConnection = {
  connection: ConnectionTable;
  manifest: Manifest;
  removed: false | { people: readonly PersonTokenTable[] };
  appTokens?: readonly UpstreamTokenTable[];
};

/**
 * Revokes the tokens that a connection had, and forgets a registration that it no longer needs: after the transaction in which
 * nobody came to use them here any more, whatever the server says. False: it had none, or the server has no place to revoke them.
 */
export async function endTokens(
  { broker, oauth }: Uses<'clock' | 'log' | 'store' | 'vault' | 'outbound'> & { oauth: OAuthConnections },
  { connection, manifest, removed, appTokens = [] }: FormerConnection,
): Promise<boolean | OAuthProblem> {
  const { organisation_id: organisationId, id, platform_id: platformId } = connection;
  await revokeAppTokens(broker, { connection, manifest }, appTokens);
  const revoked = await oauth.revoke(connection, manifest, 'connections', connection);
  if (typeof revoked === 'object' && isProblem(revoked))
    broker.log.warn({ connection: id, detail: revoked.detail }, 'tokens of a connection could not be revoked');
  if (!removed) return revoked;
  await revokeGiven({ broker, oauth }, { connection, manifest }, removed.people);
  // Last: with it go the client's credentials, which revoking takes.
  await forgetRegistration(broker.store.db, { organisationId, platformId, connectionId: id });
  return revoked;
}
