/** What an MCP client asks an owner for, read out of the authorization server, for the page on which the owner decides. */
import { ServerResponse } from 'node:http';
import type { Client, Interaction } from 'oidc-provider';
import { redirectHost } from '../authorization/redirect-host.ts';
import type { AskedConsent } from '../calls/mcp-consent.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { Refusal } from './errors.ts';
import type { Context } from './route.ts';

export type ConsentRequest = { interaction: Interaction; client: Client; asked: AskedConsent };

/**
 * The request behind a consent page, for the browser that began it: its cookie and the address must name the same one.
 * @throws Refusal not_found
 */
export async function loadConsentRequest({
  governor,
  request,
  params,
}: Pick<Context, 'governor' | 'request' | 'params'>): Promise<ConsentRequest> {
  const provider = await governor.authorization.provider();
  // As the provider itself: loaded when somebody connects an MCP client.
  const { errors } = await import('oidc-provider');
  let interaction: Interaction;
  try {
    interaction = await provider.interactionDetails(request, new ServerResponse(request));
  } catch (error) {
    if (error instanceof errors.SessionNotFound) throw unknown();
    throw error;
  }
  const { client_id: clientId = '', redirect_uri: redirectUri = '', scope = '' } = interaction.params;
  const client = interaction.uid === params.uid ? await provider.Client.find(clientId) : undefined;
  if (!client) throw unknown();
  const asked: AskedConsent = {
    client_id: clientId,
    client_name: client.clientName ?? redirectHost(clientId.startsWith('https:') ? clientId : redirectUri),
    redirect_host: redirectHost(redirectUri),
    scope,
    interaction: { kind: 'Interaction', id: sha256Hex(interaction.uid) },
  };
  return { interaction, client, asked };
}

const unknown = () =>
  new Refusal(
    'not_found',
    'This request is over, or began in another browser. Go back to the application and connect again.',
  );

/** Tells the authorization server what was decided. Answers where the browser goes on to, with its cookie. */
export async function finishConsent(
  { governor, request }: Pick<Context, 'governor' | 'request'>,
  result: Record<string, unknown>,
): Promise<string> {
  const provider = await governor.authorization.provider();
  return await provider.interactionResult(request, new ServerResponse(request), result, {
    mergeWithLastSubmission: false,
  });
}
