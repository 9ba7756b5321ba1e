/** The credential of a connection for what an owner asks of a platform: refreshed first, where it is a token that is over. */

import type { Broker } from '../broker.ts';
import type { Credential, Credentials } from '../calls/credentials.ts';
import { isExpired } from '../oauth-client/credential.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { ConnectionTable } from '../store/schema.ts';

/** `detail`: why there is none, and what an owner does about it. */
export type FreshCredential = { ok: true; credential: Credential } | { ok: false; detail: string };

/** Opens it. Asks nobody but, where a token is due, the authorization server. */
export async function freshCredential(
  { broker, credentials, oauth }: { broker: Broker; credentials: Credentials; oauth: OAuthConnections },
  connection: ConnectionTable,
  manifest: Manifest,
): Promise<FreshCredential> {
  const none = (detail: string): FreshCredential => ({ ok: false, detail });
  const facts = { ...connection, upstreamScopes: null };
  const open = (one: typeof facts) => credentials.open(connection.organisation_id, one, manifest.auth.type === 'basic');
  let credential = open(facts);
  if (typeof credential === 'object' && credential.oauth?.refreshable) {
    const { refreshAt } = credential.oauth;
    if (refreshAt !== null && refreshAt <= broker.clock()) {
      const fresh = await oauth.refresh(connection, manifest, credential.oauth, false);
      if (fresh.kind === 'unavailable') return none(fresh.detail);
      if (fresh.kind === 'replaced') credential = open({ ...facts, credential: fresh.credential });
    }
  }
  if (typeof credential === 'object' && credential.oauth && isExpired(credential.oauth, broker.clock()))
    return none('The consent of this connection was revoked or has expired: connect it again.');
  if (credential === undefined) return none('The connection has no secret yet: give it one.');
  if (credential === 'unreadable') return none('The stored secret cannot be opened: replace it.');
  return { ok: true, credential };
}
