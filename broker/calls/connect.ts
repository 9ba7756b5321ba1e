/** Which connection an allowed or held call uses, and its credential; or why it cannot go. */

import type { Outcome } from '../audit/outcome.ts';
import type { Broker } from '../broker.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { ConnectionFacts, LoadedFacts } from '../facts/facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Grant } from '../policy/facts.ts';
import { isExpired } from '../token-source/access-token.ts';
import { installationAt } from '../token-source/app-installation.ts';
import type { Action } from '../wire/action.ts';
import { appLimits } from './app-limits.ts';
import { type Call, withRecord } from './call.ts';
import type { Credentials } from './credentials.ts';
import type { CallCredential } from './token-renewal.ts';

/** `call`: with the connection on record. */
export type Connected = { call: Call } & (
  | { ok: true; platform: CompiledPlatform; connection: ConnectionFacts; credential: CallCredential }
  | { ok: false; outcome: Outcome }
);

/** `grant`: the one that the decision used. */
export function connect(
  services: { broker: Broker; credentials: Credentials },
  given: Call,
  loaded: LoadedFacts,
  grant: Grant | undefined,
): Connected {
  const { action, who } = given;
  const { platform } = loaded;
  const connection = grant && loaded.connections.get(grant.id);
  const call = connection ? withRecord(given, { connectionId: connection.id }) : given;
  const { record } = call;
  const ended = (outcome: Outcome): Connected => ({ ok: false, call, outcome });
  if (platform === undefined) return ended({ kind: 'not_connected', call: record });
  const { manifest } = platform;
  if (given.git && manifest.git_base_url === undefined) return ended({ kind: 'not_connected', call: record });
  // One token per person, and we hold none of this person's: never fall back to the shared one.
  if (manifest.per_person?.enabled) {
    const reason = whyNoPersonalToken(action, manifest.per_person.asserted ?? []);
    return ended({ kind: 'consent_required', reason, call: given.record });
  }
  const { auth } = manifest;
  const { organisation_id: organisationId } = who.agent;
  const opened = connection && services.credentials.open(organisationId, connection, auth);
  if (opened === 'unreadable') return ended({ kind: 'credential_unreadable', call: record });
  if (!connection || !opened) {
    // At an authorization server an owner connects it by one button.
    const isWaiting = connection !== undefined && auth.type === 'oauth2';
    return ended({ kind: 'not_connected', ...(isWaiting && { connectionId: connection.id }), call: record });
  }
  const now = services.broker.clock();
  const credential: CallCredential =
    'installationId' in opened
      ? {
          installation: installationAt(
            { organisationId, platformId: action.platform, connectionId: connection.id },
            manifest,
            opened.installationId,
          ),
          limits: appLimits(given, loaded, grant, now),
        }
      : opened;
  const token = 'token' in credential ? credential.token : undefined;
  // Nobody but a person can help, so nobody is asked.
  if (token && !token.refreshable && isExpired(token, now))
    return ended({ kind: 'reauth_needed', connectionId: connection.id, cause: 'expired', call: record });
  if (connectionLack(manifest, connection, action.scope) === 'needs_consent')
    return ended({ kind: 'needs_consent', connectionId: connection.id, call: record });
  return { ok: true, call, platform, connection, credential };
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
