/**
 * Client ID metadata documents of the broker (draft-ietf-oauth-client-id-metadata-document): the URL of a document is the broker's client id at
 * authorization servers that support them, which fetch it. Each connection has its own document, as it has its own redirect URI. A document
 * contains nothing about the connection, so it is generated from the URL alone, and does not reveal which connections exist.
 */
import { connectionRedirectUri } from './redirect-uri.ts';

/** The path of the documents; each is one segment below it. */
export const CLIENT_DOCUMENT_PATH = '/.well-known/svc-oauth-client';

/** The name in registrations and documents. */
export const CLIENT_NAME = 'Agent Broker';
export const GRANT_TYPES = ['authorization_code', 'refresh_token'] as const;
export const RESPONSE_TYPES = ['code'] as const;

/** Returns the client id of a connection; undefined without https: servers fetch documents by https only (section 3). */
export const clientDocumentUrl = (baseUrl: string, connectionId: string): string | undefined =>
  baseUrl.startsWith('https:') ? `${baseUrl}${CLIENT_DOCUMENT_PATH}/${connectionId}` : undefined;

/** Whether this client id is a connection's document, including under an earlier address of the broker. */
export const isClientDocument = (clientId: string, connectionId: string): boolean =>
  URL.parse(clientId)?.pathname === `${CLIENT_DOCUMENT_PATH}/${connectionId}`;

/**
 * Returns the document of a connection (section 4.1). The client is public: codes are protected by PKCE and by a redirect URI that is the broker's own.
 * Undefined without https.
 */
export function clientDocument(baseUrl: string, connectionId: string) {
  const url = clientDocumentUrl(baseUrl, connectionId);
  return (
    url && {
      client_id: url,
      client_name: CLIENT_NAME,
      client_uri: baseUrl,
      redirect_uris: [connectionRedirectUri(baseUrl, connectionId)],
      grant_types: GRANT_TYPES,
      response_types: RESPONSE_TYPES,
      token_endpoint_auth_method: 'none' as const,
      application_type: applicationTypeOf(baseUrl),
    }
  );
}

/** OpenID Connect Dynamic Client Registration 1.0 section 2: servers refuse a loopback address of a `web` application. */
export const applicationTypeOf = (baseUrl: string): 'web' | 'native' =>
  baseUrl.startsWith('https:') ? 'web' : 'native';
