/** Connecting a platform through OAuth: an owner is sent to its authorization server, and comes back. */
import { z } from 'zod';
import { settleConsent } from '../../../admin/settle-consent.ts';
import { scopesWaitingForConsent, wantedConsent } from '../../../admin/wanted-consent.ts';
import { recordChange } from '../../../audit/record-change.ts';
import type { OwnerPrincipal } from '../../../auth/principal.ts';
import { foreignRequest, readSessionCookie } from '../../../auth/session-cookie.ts';
import { readFacts } from '../../../oauth-client/facts.ts';
import type { Connected } from '../../../oauth-client/oauth-connections.ts';
import { isProblem, type OAuthProblem } from '../../../oauth-client/problem.ts';
import { CONNECTED_PATH } from '../../../oauth-client/redirect-uri.ts';
import type { Manifest } from '../../../platforms/manifest.ts';
import type { Services } from '../../../services.ts';
import { findConnection } from '../../../store/connections.ts';
import { useOAuthFlow } from '../../../store/oauth-flows.ts';
import { forgetTokens, putTokens } from '../../../store/oauth-tokens.ts';
import type { ConnectionTable, OAuthFlowTable } from '../../../store/schema.ts';
import { connectedPage, notConnectedPage, onceMorePage } from '../../connected-page.ts';
import { errorReply } from '../../envelope.ts';
import { type ErrorCode, Refusal } from '../../errors.ts';
import {
  Connection,
  connectionShown,
  loadConnection,
  loadManifest,
  unknownConnection,
} from '../../owned-connection.ts';
import { howOf, ownerChange } from '../../owner-change.ts';
import { json, type Reply } from '../../reply.ts';
import { type Context, route } from '../../route.ts';

const params = { id: z.guid().describe('the id of the connection') };

const CODES = {
  unsuitable: 'conflict',
  stale: 'invalid_request',
  declined: 'forbidden',
  invalid_grant: 'invalid_request',
  client_rejected: 'upstream_unreachable',
  failed: 'upstream_unreachable',
  unreachable: 'upstream_unreachable',
} as const satisfies Record<OAuthProblem['problem'], ErrorCode>;

const refusalOf = ({ problem, detail }: OAuthProblem): Refusal => new Refusal(CODES[problem], detail);

/** POST /owner/connections/{id}/oauth/start */
export const connectOAuth = route({
  method: 'POST',
  path: '/owner/connections/{id}/oauth/start',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'oauth-starts', perMinute: 30, per: 'address' },
  capability: 'owner.connections.oauth_start',
  summary: 'Begins to connect through OAuth: answers where to send the browser of the owner who asks.',
  params,
  body: z.strictObject({}),
  bodyOptional: true,
  answers: {
    200: {
      description: 'Where to go, within 10 minutes. The browser that comes back must be signed in as the same owner.',
      schema: z.object({ authorization_url: z.url(), expires_at: z.iso.datetime() }),
    },
  },
  errors: ['not_found', 'conflict', 'rate_limited', 'upstream_unreachable'],
  handle: async (context) => {
    const { services, who } = context;
    const { db } = services.broker.store;
    const connection = await loadConnection(db, who.organisationId, context.params.id);
    const manifest = await loadManifest(db, who.organisationId, connection.platform_id);
    // What one browser began no other one finishes. A program has none, so its owner may use any.
    const sessionId = howOf(context) === 'console' ? who.session.id : null;
    const more = await wantedConsent(services, connection, manifest);
    const begun = await services.oauth.begin(connection, manifest, { ownerId: who.owner.id, sessionId, more });
    if (isProblem(begun)) throw refusalOf(begun);
    return json(200, { authorization_url: begun.url, expires_at: new Date(begun.expiresAt).toISOString() });
  },
});

/** POST /owner/connections/{id}/oauth/disconnect */
export const disconnectOAuth = route({
  method: 'POST',
  path: '/owner/connections/{id}/oauth/disconnect',
  auth: 'owner',
  role: 'admin',
  capability: 'owner.connections.oauth_disconnect',
  summary: 'Forgets the tokens of a connection, and revokes them at the authorization server where it lets one.',
  params,
  body: z.strictObject({}),
  bodyOptional: true,
  answers: {
    200: {
      description: 'The connection as it is now, and what became of the tokens at the server.',
      schema: z.object({ connection: Connection, revoked: z.boolean(), detail: z.string() }),
    },
  },
  errors: ['not_found', 'conflict', 'audit_unavailable'],
  handle: async (context) => {
    const { services, who } = context;
    const { organisationId } = who;
    const { db } = services.broker.store;
    const connection = await loadConnection(db, organisationId, context.params.id);
    const { id, label, platform_id: platform } = connection;
    if (connection.oauth === null)
      throw new Refusal('conflict', 'This connection was not made through OAuth. Remove it, or replace its secret.');
    const manifest = await loadManifest(db, organisationId, platform);
    const change = { reason: 'connection_disconnected', platform, connection: id };
    const { before, after } = await ownerChange(context, change, async (db, note) => {
      const before = await findConnection(db, organisationId, id);
      const after = before?.oauth ? await forgetTokens(db, { organisationId, id }) : undefined;
      if (!before || !after) throw unknownConnection();
      note({ label, revision: after.revision });
      return { before, after };
    });
    // Nobody uses them here any more, whatever the server says now.
    const revoked = await services.oauth.revoke(before, manifest);
    const detail =
      typeof revoked === 'object'
        ? `The tokens are forgotten here, but could not be revoked: ${revoked.detail} Take the access away at the platform, too.`
        : revoked
          ? 'The tokens are forgotten here, and revoked at the authorization server.'
          : 'The tokens are forgotten here. The authorization server has no place to revoke them: take the access away at the platform, too.';
    return json(200, {
      connection: connectionShown(after, manifest, services.broker.clock()),
      revoked: revoked === true,
      detail,
    });
  },
});

const CALLBACK = {
  method: 'GET',
  auth: 'none',
  limit: { name: 'oauth-callbacks', perMinute: 60, per: 'address' },
  answers: { 200: { description: 'A page that leads to the connections.', type: 'text/html' } },
  errors: ['invalid_request', 'forbidden', 'conflict', 'rate_limited', 'upstream_unreachable', 'audit_unavailable'],
  handle: async (context: Context<'none', undefined>) => {
    try {
      return await comeBack(context);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (context.request.headers.accept?.includes('text/html')) return notConnectedPage(error, context.correlationId);
      return errorReply(error, context);
    }
  },
} as const;

/** GET /console/connections/callback: where the authorization servers of clients registered by hand send the browser. */
export const connectionCallback = route({
  ...CALLBACK,
  path: CONNECTED_PATH,
  capability: 'owner.connections.oauth_callback',
  summary: "Takes an authorization server's answer, and connects the platform.",
});

/** GET /console/connections/callback/{id}: where the authorization server of one connection sends the browser. */
export const ownConnectionCallback = route({
  ...CALLBACK,
  path: `${CONNECTED_PATH}/{id}`,
  capability: 'owner.connections.oauth_own_callback',
  summary: "Takes the answer of one connection's authorization server, at the redirect URI of that connection.",
  params,
});

const STALE =
  'Nothing that was begun within the last 10 minutes waits for this answer. Press Connect in the console again.';

async function comeBack(context: Context<'none', undefined>): Promise<Reply> {
  const { services, query, correlationId } = context;
  const { broker, oauth } = services;
  const { db } = broker.store;
  const path = context.params.id === undefined ? CONNECTED_PATH : `${CONNECTED_PATH}/${context.params.id}`;
  const flow = await oauth.flowOf(path, query);
  if (!flow) throw new Refusal('invalid_request', STALE);
  const owner = await ownerHere(context);
  if (!owner && !query.has('again')) return onceMorePage(`${path}?${query}&again=1`);
  if (!owner || !mayFinish(owner, flow))
    throw new Refusal(
      'forbidden',
      owner
        ? 'Another owner, or another browser, began this. Press Connect in the console of this browser.'
        : `This browser is not signed in at ${broker.baseUrl}. Sign in there as the owner who began, then press Connect again.`,
    );
  // Once: a code that is sent twice makes a server revoke what it gave for it (RFC 6749 section 4.1.2).
  if (!(await useOAuthFlow(db, flow.state_hash))) throw new Refusal('invalid_request', STALE);
  const { organisationId } = owner;
  const connection = await findConnection(db, organisationId, flow.connection_id);
  if (!connection) throw new Refusal('conflict', 'The connection was removed in the meantime.');
  const { id, label, platform_id: platform } = connection;
  const manifest = await loadManifest(db, organisationId, platform);
  const done = await oauth.finish(flow, connection, manifest, query);
  if (isProblem(done)) throw refusalOf(done);
  // Whose account it is stands in the row and not in the receipt, which may go anywhere.
  const detail = done.account === null ? null : `connected as ${done.account}`;
  const change = { reason: 'connection_connected', detail, platform, connection: id };
  const by = { owner: owner.owner, how: 'console' as const, correlationId };
  await recordChange(services, by, change, async (db, note) => {
    const connected = await putTokens(db, { organisationId, id }, done.tokens);
    if (!connected) throw new Refusal('conflict', 'The connection was removed in the meantime.');
    note({ label, revision: connected.revision, scopes: [...done.scopes] });
  });
  // Nobody can end the consent of an account that was replaced from here any more.
  const before = readFacts(connection.oauth)?.account ?? null;
  if (before !== null && done.account !== null && before !== done.account) await oauth.revoke(connection, manifest);
  try {
    await settleConsent(services, by, platform);
  } catch (error) {
    // It is connected whatever becomes of who waited; an owner can still answer them.
    broker.log.error({ err: error, connection: id }, 'requests for more consent could not be answered');
  }
  return connectedPage(id, await unmetScopes(services, connection, manifest, done));
}

/** The scopes that agents wait for still, because the server granted less than they need. */
async function unmetScopes(
  services: Services,
  { organisation_id: organisationId, platform_id: platformId }: ConnectionTable,
  { needs = {} }: Manifest,
  { tokens }: Connected,
): Promise<string[]> {
  if (tokens.upstreamScopes === null) return [];
  const granted: string[] = JSON.parse(tokens.upstreamScopes);
  const waiting = await scopesWaitingForConsent(services, organisationId, platformId);
  return waiting.filter((scope) => needs[scope] && !needs[scope].some((one) => granted.includes(one)));
}

const mayFinish = ({ owner, session, role }: OwnerPrincipal, flow: OAuthFlowTable): boolean =>
  owner.id === flow.owner_id &&
  owner.organisation_id === flow.organisation_id &&
  role === 'admin' &&
  (flow.session_id === null || flow.session_id === session.id);

/** Who is signed in with this browser, if its session came along. */
async function ownerHere({ services, request }: Context<'none', undefined>): Promise<OwnerPrincipal | undefined> {
  const { baseUrl } = services.broker;
  const session = readSessionCookie(request, baseUrl);
  if (session === undefined || foreignRequest(request, baseUrl) !== undefined) return undefined;
  const who = await services.authenticateOwner(session);
  return who.kind === 'owner' ? who : undefined;
}
