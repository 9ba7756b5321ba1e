/** Which connection an allowed or held call uses, and its credential; or why it cannot go. */

import type { Outcome } from '../audit/outcome.ts';
import type { Broker } from '../broker.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { ConnectionFacts, LoadedFacts } from '../facts/facts.ts';
import { isExpired } from '../oauth-client/credential.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Action } from '../wire/action.ts';
import type { Call } from './call.ts';
import type { Credential, Credentials } from './forward.ts';

export type Connected =
  | { ok: true; platform: CompiledPlatform; connection: ConnectionFacts; credential: Credential }
  | { ok: false; result: 'blocked' | 'errored'; reason: string; outcome: Outcome };

/** `grantId`: the grant that the decision used. Notes the connection on the row. */
export function connect(
  services: { broker: Broker; credentials: Credentials },
  call: Call,
  loaded: LoadedFacts,
  grantId: string | undefined,
): Connected {
  const { action, row, who } = call;
  const auditId = row.id;
  const { platform } = loaded;
  const blocked = (reason: string, outcome: Outcome): Connected => ({ ok: false, result: 'blocked', reason, outcome });
  if (platform === undefined) return blocked('platform_not_connected', { kind: 'not_connected', auditId });
  const { manifest } = platform;
  // One token per person, and we hold none of this person's: never fall back to the shared one.
  if (manifest.per_person?.enabled) {
    const reason = whyNoPersonalToken(action, manifest.per_person.asserted ?? []);
    return blocked('consent_required', { kind: 'consent_required', auditId, reason });
  }
  const connection = grantId === undefined ? undefined : loaded.connections.get(grantId);
  row.connection_id = connection?.id ?? null;
  const basic = manifest.auth.type === 'basic';
  const credential = connection && services.credentials.open(who.agent.organisation_id, connection, basic);
  if (credential === 'unreadable') {
    const reason = 'credential_unreadable';
    return { ok: false, result: 'errored', reason, outcome: { kind: 'credential_unreadable', auditId } };
  }
  if (!connection || !credential) {
    // At an authorization server an owner connects it by one button.
    const isWaiting = connection !== undefined && manifest.auth.type === 'oauth2';
    const where = isWaiting ? { connectionId: connection.id } : {};
    return blocked('platform_not_connected', { kind: 'not_connected', auditId, ...where });
  }
  const { oauth } = credential;
  // Nobody but a person can help, so nobody is asked.
  if (oauth && !oauth.refreshable && isExpired(oauth, services.broker.clock()))
    return blocked('platform_reauth_needed', { kind: 'reauth_needed', auditId, connectionId: connection.id });
  if (connectionLack(manifest, connection, action.scope) === 'needs_consent')
    return blocked('needs_consent', { kind: 'needs_consent', auditId, connectionId: connection.id });
  return { ok: true, platform, connection, credential };
}

/** What keeps a scope from being used through a connection, as far as shows without opening its credential. */
export function connectionLack(
  manifest: Manifest,
  connection: ConnectionFacts | undefined,
  scope: string,
): 'platform_not_connected' | 'needs_consent' | 'platform_reauth_needed' | undefined {
  if (!connection?.credential) return 'platform_not_connected';
  const needed = manifest.needs?.[scope];
  const { upstreamScopes } = connection;
  if (needed && upstreamScopes && !needed.some((one) => upstreamScopes.includes(one))) return 'needs_consent';
  return connection.status === 'reauth_needed' ? 'platform_reauth_needed' : undefined;
}

/** `asserted`: the sources whose word for who somebody is is taken. Assertions always are. */
function whyNoPersonalToken({ caller }: Action, asserted: readonly string[]) {
  if (caller === undefined) return 'no_caller';
  return 'source' in caller && !asserted.includes(caller.source) ? 'asserted_not_allowed' : 'not_consented';
}
