/** Reads what an MCP client requests from the authorization server, for the page on which an owner decides. */
import { ServerResponse } from 'node:http';
import type { Client, Interaction, default as Provider } from 'oidc-provider';
import type { AskedConsent } from '../admin/mcp-consent.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { beganInThisBrowser } from '../oauth-server/browser-cookie.ts';
import { mcpResource } from '../oauth-server/metadata.ts';
import type { Db } from '../store/store.ts';
import { Refusal } from './errors.ts';
import type { Context } from './route.ts';

export type ConsentRequest = { interaction: Interaction; client: Client; asked: AskedConsent };

/**
 * Loads the request behind a consent page, for the browser that began it: its cookies and the address must name the same request. @throws Refusal
 * not_found
 */
export async function loadConsentRequest({
  services,
  request,
  params,
}: Pick<Context, 'services' | 'request' | 'params'>): Promise<ConsentRequest> {
  const provider = await services.authorization.provider();
  // Loaded lazily, like the provider itself: only needed when somebody connects an MCP client.
  const { errors } = await import('oidc-provider');
  let interaction: Interaction;
  try {
    interaction = await provider.interactionDetails(request, new ServerResponse(request));
  } catch (error) {
    if (error instanceof errors.SessionNotFound) throw unknown();
    throw error;
  }
  if (!(await beganInThisBrowser(services.broker, request, interaction.uid))) throw unknown();
  const clientId = parameter(interaction, 'client_id');
  const redirectUri = parameter(interaction, 'redirect_uri');
  const client = interaction.uid === params.uid ? await provider.Client.find(clientId) : undefined;
  if (!client) throw unknown();
  const asked: AskedConsent = {
    client_id: clientId,
    client_name: client.clientName ?? redirectHost(clientId.startsWith('https:') ? clientId : redirectUri),
    redirect_host: redirectHost(redirectUri),
    scope: parameter(interaction, 'scope'),
    interaction: { kind: 'Interaction', id: sha256Hex(interaction.uid) },
  };
  return { interaction, client, asked };
}

function parameter({ params }: Interaction, name: string): string {
  const value = params[name];
  return typeof value === 'string' ? value : '';
}

const unknown = () =>
  new Refusal(
    'not_found',
    'This request was answered already, has expired, or was started in another browser. If the application is not connected, connect again from it.',
  );

type Deciding = Pick<Context, 'services' | 'request'>;

/** Reports an owner's refusal to the authorization server, in a transaction. Returns the address to which the browser continues. */
export async function reportConsentRefused(context: Deciding, tx: Db): Promise<string> {
  const { broker, authorization } = context.services;
  const provider = await authorization.within(tx as typeof broker.store.db);
  return await finish(provider, context, {
    error: 'access_denied',
    error_description: 'The owner denied the request.',
  });
}

/**
 * Stores an authorisation in the authorization server, in the transaction that creates it: one that is unknown to the library could not be used, but
 * would be listed. `id`: of the authorisation. `given`: the scopes given of those that were requested. Returns the address to which the browser continues.
 */
export async function storeConsentGrant(
  context: Deciding,
  tx: Db,
  { interaction, client, asked }: ConsentRequest,
  { id, given }: { id: string; given: readonly string[] },
): Promise<string> {
  const { broker, authorization } = context.services;
  const provider = await authorization.within(tx as typeof broker.store.db);
  const grant = new provider.Grant({ accountId: id, clientId: client.clientId });
  grant.jti = id;
  const refused = asked.scope.split(' ').filter((scope) => !given.includes(scope));
  // The library finds scopes by the resource as the client writes it, which may differ in letter case.
  for (const resource of new Set([interaction.params.resource ?? mcpResource(broker)].flat() as string[])) {
    grant.addResourceScope(resource, given.join(' '));
    // Otherwise the library would ask for them again immediately.
    if (refused.length > 0) grant.rejectResourceScope(resource, refused.join(' '));
  }
  await grant.save();
  return await finish(provider, context, { login: { accountId: id }, consent: { grantId: id } });
}

const finish = (provider: Provider, { request }: Deciding, result: Record<string, unknown>): Promise<string> =>
  provider.interactionResult(request, new ServerResponse(request), result, { mergeWithLastSubmission: false });

/** Describes where a code is sent, for display: a site's host, or an application's private scheme. */
function redirectHost(uri: string): string {
  const url = URL.parse(uri);
  if (url === null) return '';
  return url.protocol === 'https:'
    ? url.host
    : url.protocol === 'http:'
      ? url.hostname
      : `${url.protocol}//${url.host}`;
}
