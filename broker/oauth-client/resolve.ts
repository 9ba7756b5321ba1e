/** Completes a manifest's client configuration: discovery (RFC 9728, RFC 8414), and the broker's own client at the server that was found. */
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import { ProviderUnreachable, providerFetch } from '../egress/provider-fetch.ts';
import { clientDocumentUrl, isClientDocument } from './client-document.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import { resourceFinder } from './protected-resource.ts';
import type { Described, Registered } from './registered.ts';
import { findRegistration, type Registration, register } from './registration.ts';
import { isSameIssuer, mixUpRisk, type ServerFinder } from './server.ts';

/** The client id to which a code or tokens were issued, and the server that issued them. */
export type Issued = { client: string; server: string };

/** `issued` undefined: an owner is connecting, so the broker may become a client if necessary, and cached discovery results are refreshed. */
export type Resolver = (described: Described, issued: Issued | undefined) => Promise<Registered | OAuthProblem>;

type Client = Pick<Registration, 'client_id' | 'client_secret' | 'auth_method'> & { isDocument?: true };

const documentClient = (url: string): Client => ({ client_id: url, auth_method: 'none', isDocument: true });

/** Returns the resolver. It sends no request where the manifest is complete. */
export function resolver(
  broker: Pick<Broker, 'store' | 'vault' | 'clock' | 'outbound' | 'baseUrl'>,
  find: ServerFinder,
): Resolver {
  const findResource = resourceFinder(broker, find);
  const fetch = providerFetch(broker.outbound);

  const clientAt = async (
    described: Described,
    issuer: string,
    client: string | undefined,
  ): Promise<Client | OAuthProblem> => {
    const { platformId, connectionId, registering } = described;
    const redirectUri = described.redirectUri.uri;
    if (client !== undefined && isClientDocument(client, connectionId)) return documentClient(client);
    const known = await findRegistration(broker, described, { issuer, redirectUri, client });
    if (known && (client !== undefined || registering !== 'document')) return known;
    if (client !== undefined)
      return {
        problem: 'stale',
        detail: `The broker's client registration for ${platformId} no longer exists. Connect again.`,
      };
    const metadata = await find({ ...described, issuer });
    if (isProblem(metadata)) return metadata;
    const misled = mixUpRisk(metadata, described);
    if (misled) return misled;
    const document = clientDocumentUrl(broker.baseUrl, connectionId);
    const isTaken = registering === 'document' || metadata.client_id_metadata_document_supported === true;
    // The order of MCP 2026-07-28, Client Registration: a document before registration.
    if (registering !== 'dynamic' && isTaken && document !== undefined) return documentClient(document);
    if (registering === 'document')
      return {
        problem: 'unsuitable',
        detail: `The authorization server of ${platformId} fetches client ID metadata documents by https only, and BASE_URL of this broker is http.`,
      };
    try {
      return await register(broker, fetch, described, { metadata, redirectUri, baseUrl: broker.baseUrl });
    } catch (error) {
      if (!(error instanceof ProviderUnreachable)) throw error;
      return {
        problem: 'unreachable',
        detail: `The authorization server of ${platformId} could not be reached. Try again shortly.`,
      };
    }
  };

  return async (described, issued) => {
    const client = issued?.client;
    const { clientId, registering: _registering, ...rest } = described;
    const { discoverAt } = rest;
    const found =
      discoverAt === undefined ? undefined : await findResource(discoverAt, { fresh: client === undefined });
    if (found && isProblem(found)) return found;
    const known = found
      ? {
          ...rest,
          // An MCP server may name several in any order: tokens stay with the one that issued them while it is named.
          issuer: found.issuers.find((one) => issued && isSameIssuer(one, issued.server)) ?? found.issuers[0],
          resource: found.resource,
          scopes: rest.scopes.length > 0 ? rest.scopes : found.scopes,
        }
      : rest;
    if (clientId !== undefined) return { ...known, clientId, isOwnRegistration: false };
    if (known.issuer === undefined)
      return { problem: 'unsuitable', detail: `${rest.platformId} needs a client_id, or an issuer to register at.` };
    const own = await clientAt({ ...described, ...known }, known.issuer, client);
    if (isProblem(own)) return own;
    const { client_id, client_secret: secret, auth_method: method, isDocument = false } = own;
    return {
      ...known,
      clientId: client_id,
      isOwnRegistration: !isDocument,
      clientSecret: secret === undefined ? undefined : new Secret(secret),
      serverOptions: { ...known.serverOptions, ...(method !== 'none' && { token_endpoint_auth_method: method }) },
    };
  };
}
