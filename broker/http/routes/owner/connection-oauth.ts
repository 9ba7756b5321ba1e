/** Connects a platform through OAuth: an owner is sent to its authorization server, and comes back. */
import { z } from 'zod';
import {
  beginOAuth,
  disconnectOAuth as disconnect,
  finishOAuth,
  mayFinishOAuth,
  STALE,
} from '../../../admin/connections/connection-oauth.ts';
import type { OwnerPrincipal } from '../../../auth/principal.ts';
import { foreignRequest, readSessionCookie } from '../../../auth/session-cookie.ts';
import { storedUuid } from '../../../crypto/ids.ts';
import { OWN_PATH, SHARED_PATH } from '../../../oauth-client/redirect-uri.ts';
import { errorReply } from '../../envelope.ts';
import { asRefusal, Refusal } from '../../errors.ts';
import { Connection, connectionShown } from '../../owned/connection.ts';
import { changingOwner, howOf } from '../../owner-change.ts';
import { connectedPage, notConnectedPage, onceMorePage } from '../../pages/connected-page.ts';
import { json, type Reply } from '../../reply.ts';
import { type Context, route } from '../../route.ts';
import { personComesBack } from '../person-consent.ts';

const params = { id: z.guid().describe('the id of the connection') };

/** POST /owner/connections/{id}/oauth/start */
export const connectOAuth = route({
  method: 'POST',
  path: '/owner/connections/{id}/oauth/start',
  auth: 'owner',
  role: 'admin',
  limit: { name: 'oauth-starts', perMinute: 30, per: 'address' },
  capability: 'owner.connections.oauth_start',
  summary: "Starts connecting through OAuth: returns the address to open in the owner's browser.",
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
    const { services, who, params } = context;
    // A flow begun in one browser cannot be finished in another. A program has no browser session, so its owner may use any.
    const sessionId = howOf(context) === 'console' ? who.session.id : null;
    const begun = await beginOAuth(services, who.owner, { id: storedUuid(params.id), sessionId });
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
  summary: 'Deletes the tokens of a connection, and revokes them at the authorization server if it supports that.',
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
    const { services, params } = context;
    const ended = await disconnect(services, changingOwner(context), storedUuid(params.id));
    const { connection, manifest, revoked } = ended;
    const detail = `The tokens are forgotten here${whatBecame(revoked)}`;
    return json(200, {
      connection: connectionShown(connection, manifest, services.broker),
      revoked: revoked === true,
      detail,
    });
  },
});

/** What became of tokens at their server, as the end of a sentence and what to do. */
function whatBecame(revoked: Awaited<ReturnType<typeof disconnect>>['revoked']): string {
  if (revoked === true) return ', and revoked at the authorization server.';
  if (revoked === false)
    return '. The authorization server has no revocation endpoint: revoke the access at the platform, too.';
  const { detail, retriedUntil } = revoked;
  const next =
    retriedUntil === undefined
      ? 'Revoke the access at the platform, too.'
      : `The broker tries again until ${new Date(retriedUntil).toISOString()}. If the access must end before, revoke it at the platform.`;
  return `, but could not be revoked: ${detail} ${next}`;
}

const CALLBACK = {
  method: 'GET',
  auth: 'none',
  limit: { name: 'oauth-callbacks', perMinute: 60, per: 'address' },
  answers: { 200: { description: 'A page that leads to the connections.', type: 'text/html' } },
  errors: ['invalid_request', 'forbidden', 'conflict', 'rate_limited', 'upstream_unreachable', 'audit_unavailable'],
  handle: async (context: Context<'none', undefined>) => {
    try {
      return await handleCallback(context);
    } catch (error) {
      const refusal = asRefusal(error);
      if (!refusal) throw error;
      if (context.request.headers.accept?.includes('text/html'))
        return notConnectedPage(refusal, context.correlationId);
      return errorReply(refusal, context);
    }
  },
} as const;

/** GET /console/connections/callback: where the authorization servers of clients with the shared redirect URI send the browser. */
export const connectionCallback = route({
  ...CALLBACK,
  path: SHARED_PATH,
  capability: 'owner.connections.oauth_callback',
  summary: 'Handles the response of an authorization server, and connects the platform.',
});

/** GET /console/connected/{id}: redirect URI of one organisation, or of one connection. */
export const ownConnectionCallback = route({
  ...CALLBACK,
  path: `${OWN_PATH}/{id}`,
  capability: 'owner.connections.oauth_own_callback',
  summary: 'Handles the response of an authorization server at the redirect URI of an organisation or a connection.',
  params: { id: z.guid().describe('the id of the organisation, or of the connection') },
});

async function handleCallback(context: Context<'none', undefined>): Promise<Reply> {
  const { services, query, correlationId } = context;
  const { broker, oauth } = services;
  const path = context.params.id === undefined ? SHARED_PATH : `${OWN_PATH}/${context.params.id}`;
  const flow = await oauth.flowOf(path, query);
  const ofPerson = flow ? undefined : await personComesBack(context, path);
  if (ofPerson) return ofPerson;
  if (!flow) throw new Refusal('invalid_request', STALE);
  const owner = await ownerHere(context);
  if (!owner && !query.has('again')) return onceMorePage(`${path}?${query}&again=1`);
  if (!owner || !mayFinishOAuth(owner, flow))
    throw new Refusal(
      'forbidden',
      owner
        ? 'Another owner, or another browser, began this. Press Connect in the console of this browser.'
        : `This browser is not signed in at ${broker.baseUrl}. Sign in there as the owner who began, then press Connect again.`,
    );
  const by = changingOwner({ who: owner, request: context.request, correlationId });
  const { connectionId, unmet } = await finishOAuth(services, by, flow, query);
  return connectedPage(connectionId, unmet);
}

/** Returns the owner who is signed in with this browser, if the session cookie was sent. */
async function ownerHere({ services, request }: Context<'none', undefined>): Promise<OwnerPrincipal | undefined> {
  const { baseUrl } = services.broker;
  const session = readSessionCookie(request, baseUrl);
  if (session === undefined || foreignRequest(request, baseUrl) !== undefined) return undefined;
  const who = await services.authenticateOwner(session);
  return who.kind === 'owner' ? who : undefined;
}
