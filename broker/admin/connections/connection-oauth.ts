/** Connects a platform through OAuth for owners, by the redirect to its authorization server and back, and disconnects it. */
import { AuthorNotAllowed } from '../../audit/author-role.ts';
import { type ChangingOwner, recordChange, recordInTurn } from '../../audit/record-change.ts';
import type { OwnerPrincipal } from '../../auth/principal.ts';
import type { Uses } from '../../broker.ts';
import type { FactsLoader } from '../../facts/facts.ts';
import { isOtherAccount, readFacts } from '../../oauth-client/facts.ts';
import type { Connected, OAuthConnections } from '../../oauth-client/oauth-connections.ts';
import { isProblem, type OAuthProblem } from '../../oauth-client/problem.ts';
import { forgetRegistration } from '../../oauth-client/registration.ts';
import type { NotRevoked } from '../../oauth-client/revocations.ts';
import { findConnection, lockConnection } from '../../store/connections.ts';
import type { FactsReader } from '../../store/facts-reader.ts';
import { useOAuthFlow } from '../../store/oauth-flows.ts';
import { forgetTokens, putTokens } from '../../store/oauth-tokens.ts';
import { listGivenTokens } from '../../store/people.ts';
import { readStored, Texts } from '../../store/stored-json.ts';
import type { OAuthFlowTable } from '../../store/tables/connections.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import { endTokens } from '../agents/end-tokens.ts';
import { settleConsent } from '../people/settle-consent.ts';
import { scopesWaitingForConsent, wantedConsent } from '../people/wanted-consent.ts';
import { ChangeRefused } from '../refused.ts';
import type { Connecting } from './connections.ts';
import { loadConnection, loadManifest, type ReadConnection, unknownConnection } from './find-connection.ts';

const CODES = {
  unsuitable: 'conflict',
  stale: 'invalid_request',
  declined: 'forbidden',
  invalid_grant: 'invalid_request',
  client_rejected: 'upstream_unreachable',
  failed: 'upstream_unreachable',
  unreachable: 'upstream_unreachable',
} as const satisfies Record<OAuthProblem['problem'], ChangeRefused['code']>;

const refusalOf = ({ problem, detail }: OAuthProblem): ChangeRefused => new ChangeRefused(CODES[problem], detail);

/** Returns the URL to which the owner's browser is sent, and its expiry. `sessionId`: see OAuthConnections. Throws ChangeRefused. */
export async function beginOAuth(
  services: Uses<'clock' | 'store'> & { oauth: OAuthConnections },
  { id: ownerId, organisation_id: organisationId }: OwnerPrincipal['owner'],
  { id, sessionId }: { id: string; sessionId: string | null },
): Promise<{ url: string; expiresAt: number }> {
  const { connection, manifest } = await loadConnection(services.broker.store.db, organisationId, id);
  const more = await wantedConsent(services, connection, manifest);
  const begun = await services.oauth.begin(connection, manifest, { ownerId, sessionId, more });
  if (isProblem(begun)) throw refusalOf(begun);
  return begun;
}

/**
 * Deletes the tokens of a connection, and revokes them at the server; `revoked`: see `endTokens`. Throws ChangeRefused, or AuditUnavailable: then
 * nothing is changed.
 */
export async function disconnectOAuth(
  services: Connecting & Uses<'vault' | 'outbound'>,
  by: ChangingOwner,
  id: string,
): Promise<ReadConnection & { revoked: boolean | NotRevoked }> {
  const { organisation_id: organisationId } = by.owner;
  const { connection, manifest } = await loadConnection(services.broker.store.db, organisationId, id);
  if (connection.oauth === null)
    throw new ChangeRefused(
      'conflict',
      'This connection was not made through OAuth. Remove it, or replace its secret.',
    );
  const change = { reason: 'connection_disconnected', platform: connection.platform_id, connection: id };
  const { before, after } = await recordChange(services, by, change, async (tx, note) => {
    const before = await lockConnection(tx, organisationId, id);
    const after = before?.oauth ? await forgetTokens(tx, { organisationId, id }, services.broker.clock()) : undefined;
    if (!before || !after) throw unknownConnection();
    note({ label: after.label, revision: after.revision });
    return { before, after };
  });
  const revoked = await endTokens(services, { connection: before, manifest, removed: false });
  // Connecting again then registers again: a server that has deleted its client reports that on its own page only. The registration is kept while
  // people's tokens are refreshed with it.
  const { db } = services.broker.store;
  const given = await listGivenTokens(db, organisationId, { connectionId: id }, 1);
  if (given.length === 0)
    await forgetRegistration(db, { organisationId, platformId: connection.platform_id, connectionId: id });
  return { connection: after, manifest, revoked };
}

export const STALE =
  'No OAuth flow that was started within the last 10 minutes matches this response. Press Connect in the console again.';

/** Whether an owner, with this session, may finish the flow: only the owner who began it, in the same browser. */
export const mayFinishOAuth = ({ owner, session, role }: OwnerPrincipal, flow: OAuthFlowTable): boolean =>
  owner.id === flow.owner_id &&
  owner.organisation_id === flow.organisation_id &&
  role === 'admin' &&
  (flow.session_id === null || flow.session_id === session.id);

/**
 * Handles the authorization server's answer to a flow, once, and connects; access requests that waited for this consent are answered. `unmet`: scopes
 * that agents still wait for, because the server granted less than they need.
 *
 * @throws ChangeRefused, AuthorNotAllowed when the owner lost the role while the server issued the tokens, or AuditUnavailable: then it is not connected
 */
export async function finishOAuth(
  services: Connecting & { facts: FactsReader; loadFacts: FactsLoader } & Uses<'vault' | 'outbound'>,
  by: ChangingOwner,
  flow: OAuthFlowTable,
  query: URLSearchParams,
): Promise<{ connectionId: string; unmet: string[] }> {
  const { broker, oauth } = services;
  const { organisation_id: organisationId } = by.owner;
  // Only once: a code that is sent twice makes a server revoke the tokens issued for it (RFC 6749 section 4.1.2).
  if (!(await useOAuthFlow(broker.store.db, flow.state_hash))) throw new ChangeRefused('invalid_request', STALE);
  const connection = await findConnection(broker.store.db, organisationId, flow.connection_id);
  if (!connection) throw removedMeanwhile();
  const { id, label, platform_id: platform } = connection;
  const manifest = await loadManifest(broker.store.db, organisationId, platform);
  const done = await oauth.finish(flow, connection, manifest, query);
  if (isProblem(done)) throw refusalOf(done);
  // The account is recorded in the audit row but not in the receipt, which may be passed on to anyone.
  const detail = done.account === null ? null : `connected as ${done.account}`;
  const change = { reason: 'connection_connected', detail, platform, connection: id };
  const endUnkept = async () => {
    const { credential, refreshToken: refresh_token, tokenId: token_id, oauth: facts } = done.tokens;
    const unkept = { ...connection, credential, refresh_token, token_id, oauth: facts };
    await endTokens(services, { connection: unkept, manifest, removed: false });
  };
  const before = await recordInTurn(services, by, change, async (tx, note) => {
    // The locked row includes tokens that were refreshed while the code was exchanged.
    const before = await lockConnection(tx, organisationId, id);
    const place = { organisationId, id, platformId: platform };
    const connected = before && (await putTokens(tx, place, done.tokens, broker.clock()));
    if (!connected) return rollback('removed');
    note({ label, revision: connected.revision, scopes: [...done.scopes] });
    return before;
  }).catch(async (error: unknown) => {
    if (error instanceof AuthorNotAllowed) await endUnkept();
    throw error;
  });
  if (before instanceof RolledBack) {
    await endUnkept();
    throw removedMeanwhile();
  }
  // The replaced account's consent can only be ended now: afterwards the broker has no tokens of it.
  if (isOtherAccount(readFacts(before.oauth)?.account ?? null, done.account))
    await endTokens(services, { connection: before, manifest, removed: false });
  try {
    await settleConsent(services, by, platform);
  } catch (error) {
    // The connection stands even if this fails; an owner can still answer the requests.
    broker.log.error({ err: error, connection: id }, 'requests for more consent could not be answered');
  }
  return { connectionId: id, unmet: await unmetScopes(services, { connection, manifest }, done) };
}

const removedMeanwhile = () =>
  new ChangeRefused('conflict', 'The connection was removed, or given to another platform in the meantime.');

async function unmetScopes(
  services: Uses<'clock' | 'store'>,
  { connection, manifest: { needs = {} } }: ReadConnection,
  { tokens: { upstreamScopes } }: Connected,
): Promise<string[]> {
  if (upstreamScopes === null) return [];
  const granted = readStored(Texts, upstreamScopes, `upstream scopes of connection ${connection.id}`);
  const waiting = await scopesWaitingForConsent(services, connection.organisation_id, connection.platform_id);
  return waiting.filter((scope) => needs[scope] && !needs[scope].some((one) => granted.includes(one)));
}
