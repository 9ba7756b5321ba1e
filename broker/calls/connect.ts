/** Finds the connection and the credential of an allowed or held call, or the reason why it cannot be sent. */

import type { Outcome, OutcomeOf } from '../audit/outcome.ts';
import type { Uses } from '../broker.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { ConnectionFacts, Usability } from '../facts/connection-facts.ts';
import type { LoadedFacts } from '../facts/facts.ts';
import { keepNeededScope } from '../oauth-client/wanted-scopes.ts';
import type { People, PerPerson } from '../people/people.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Verdict } from '../policy/facts.ts';
import { listPersonTokens } from '../store/people.ts';
import { readStored, Texts } from '../store/stored-json.ts';
import { isExpired } from '../token-source/access-token.ts';
import { tokenRequestAt } from '../token-source/token-request.ts';
import { appLimits } from './app-limits.ts';
import { type Call, withRecord } from './call.ts';
import { type Credentials, holderOf } from './credentials.ts';
import type { CallCredential } from './token-renewal.ts';

const INSUFFICIENT_CONSENT = 'The person has consented to less than this scope needs.';
const ISSUER_GONE = 'The organisation no longer trusts the issuer that identified the person (caller_issuers).';

/** `call`: with the connection in its record. */
export type Connected = { call: Call } & (
  | { ok: true; platform: CompiledPlatform; connection: ConnectionFacts; credential: CallCredential }
  | { ok: false; outcome: Outcome }
);

/** Connects the call. `grant`: the grant that the decision used; `further`: the further scopes that the call needs. */
export async function connect(
  services: Uses<'clock' | 'store'> & { credentials: Credentials; people: People },
  given: Call,
  loaded: LoadedFacts,
  { grant, further = [] }: Pick<Verdict, 'grant' | 'further'>,
): Promise<Connected> {
  const { action, who } = given;
  const { platform } = loaded;
  const shared = grant && loaded.connections.get(grant.id);
  const call = shared ? withRecord(given, { connectionId: shared.id }) : given;
  const { record } = call;
  const ended = (outcome: Outcome): Connected => ({ ok: false, call, outcome });
  if (platform === undefined) return ended({ kind: 'not_connected', call: record });
  const { manifest } = platform;
  if (given.git && manifest.git_base_url === undefined) return ended({ kind: 'not_connected', call: record });
  const { auth } = manifest;
  const { organisation_id: organisationId } = who.agent;
  // One token per person: never fall back to the shared one.
  const used = manifest.per_person?.enabled
    ? await connectionOfPerson(services, manifest.per_person, call, shared)
    : { connection: shared };
  if ('reason' in used) return ended({ kind: 'consent_required', ...used, call: record });
  const { connection } = used;
  const opened = connection && services.credentials.open(organisationId, connection, auth);
  if (opened === 'unreadable') return ended({ kind: 'credential_unreadable', call: record });
  if (!connection || !opened) {
    // With OAuth an owner connects it by one button, so the outcome names the connection.
    const isWaiting = connection !== undefined && auth.type === 'oauth2';
    return ended({ kind: 'not_connected', ...(isWaiting && { connectionId: connection.id }), call: record });
  }
  const now = services.broker.clock();
  const credential: CallCredential =
    'secret' in opened
      ? opened
      : {
          request: tokenRequestAt(
            { organisationId, platformId: action.platform, connectionId: connection.id },
            manifest,
            opened,
            auth.type === 'app' ? appLimits(given, loaded, { grant, further }, now) : {},
          ),
        };
  const token = 'token' in credential ? credential.token : undefined;
  // The token cannot be refreshed: only a person can help, so no token is requested.
  if (token && !token.refreshable && isExpired(token, now))
    return ended(
      orAwaitingConfirmation(connection, {
        kind: 'reauth_needed',
        connectionId: connection.id,
        cause: 'expired',
        call: record,
      }),
    );
  const lacking = [action.scope, ...further].find((scope) => lacksConsent(manifest, connection.upstreamScopes, scope));
  if (lacking !== undefined) {
    if (connection.personTokens === undefined)
      return ended({ kind: 'needs_consent', connectionId: connection.id, scope: lacking, call: record });
    // An owner cannot help: the person has to consent to more, and their next consent must request these scopes.
    const needed = manifest.needs?.[lacking] ?? [];
    await keepNeededScope(services.broker.store.db, holderOf(organisationId, connection), needed);
    return ended(
      orAwaitingConfirmation(connection, {
        kind: 'consent_required',
        reason: 'not_consented',
        detail: INSUFFICIENT_CONSENT,
        isTooLittle: true,
        call: record,
      }),
    );
  }
  return { ok: true, call, platform, connection, credential };
}

/** Returns why a scope cannot be used through a connection, as far as can be seen without opening its credential. */
export function connectionLack(
  manifest: Manifest,
  connection: Usability | undefined,
  scope: string,
): 'platform_not_connected' | 'needs_consent' | 'platform_reauth_needed' | undefined {
  if (!connection?.credential) return 'platform_not_connected';
  if (lacksConsent(manifest, connection.upstreamScopes, scope)) return 'needs_consent';
  return connection.status === 'reauth_needed' ? 'platform_reauth_needed' : undefined;
}

/** Whether a scope needs more than the platform granted. When the platform does not report what it granted, nothing counts as missing. */
export function lacksConsent(
  { needs }: Pick<Manifest, 'needs'>,
  upstreamScopes: readonly string[] | null | undefined,
  scope: string,
): boolean {
  const needed = needs?.[scope];
  return needed !== undefined && upstreamScopes != null && !needed.some((one) => upstreamScopes.includes(one));
}

/**
 * Returns the outcome of a call whose tokens cannot be used. When the person has already given newer tokens that wait for an owner's
 * confirmation, the outcome says so, because another consent would not help.
 */
export function orAwaitingConfirmation(
  { awaitsOwner }: Pick<ConnectionFacts, 'awaitsOwner'>,
  outcome: OutcomeOf<'reauth_needed' | 'consent_required'>,
): OutcomeOf<'reauth_needed' | 'consent_required'> {
  if (!awaitsOwner) return outcome;
  const { kind, call } = outcome;
  const isRefused = kind === 'reauth_needed' && outcome.cause === 'refused';
  const refused = isRefused ? { upstreamStatus: 401, responsePii: outcome.responsePii ?? null } : undefined;
  const sent = kind === 'consent_required' ? outcome.refused : refused;
  return { kind: 'consent_required', reason: 'not_consented', awaits: 'owner', ...(sent && { refused: sent }), call };
}

/** Why a person's own tokens cannot be used. */
type NoTokens = Pick<OutcomeOf<'consent_required'>, 'reason' | 'detail' | 'awaits'>;

/**
 * Returns the shared connection with the tokens of the call's person in place of its own. `connection` is undefined when there is no
 * connection that people could give tokens for.
 */
async function connectionOfPerson(
  { broker: { store }, people }: Uses<'store'> & { people: People },
  { asserted = [] }: PerPerson,
  { caller, action, who }: Call,
  shared: ConnectionFacts | undefined,
): Promise<{ connection: ConnectionFacts | undefined } | NoTokens> {
  if (caller === undefined) return { reason: 'no_caller' };
  if ('reason' in caller) return caller;
  if (shared === undefined) return { connection: undefined };
  const { personId } = caller;
  if (personId === undefined) return { reason: 'not_consented' };
  const { organisation_id: organisationId } = who.agent;
  const given = await listPersonTokens(store.db, {
    organisation_id: organisationId,
    platform_id: action.platform,
    connection_id: shared.id,
    person_id: personId,
  });
  const kept = given.find(({ standing }) => standing === 'kept');
  if (kept === undefined) return { reason: 'not_consented', ...(given.length > 0 && { awaits: 'owner' as const }) };
  // A replay does not store which source named the caller when it was held; its assertion was verified then.
  if (kept.verified === 0 && !asserted.includes(kept.named_by)) return { reason: 'asserted_not_allowed' };
  const isPast = kept.verified === 1 && caller.who === undefined;
  if (isPast && !(await people.assertions.issuer(organisationId, kept.named_by)))
    return { reason: 'no_caller', detail: ISSUER_GONE };
  const { id: personTokens, status, credential, upstream_scopes: scopes } = kept;
  const upstreamScopes = scopes === null ? null : readStored(Texts, scopes, `upstream scopes of ${personTokens}`);
  const isReplaced = given.some((one) => one.standing === 'unconfirmed' && one.created_at > kept.created_at);
  const awaits = isReplaced && { awaitsOwner: true as const };
  return { connection: { ...shared, status, credential, upstreamScopes, personTokens, ...awaits } };
}
