/**
 * Redirect URIs of connections. A code goes to the token endpoint of the flow that it comes back to, so at a redirect URI shared by several
 * authorization servers one of them could obtain the code of another (mix-up attack, RFC 9700 section 4.4.2). Organisations do not trust each
 * other, and configure the endpoints of their platforms themselves. So each organisation has a redirect URI of its own, and each client that
 * the broker created itself one for its connection. At the shared one only codes for built-in token endpoints are accepted.
 */
import { BUILTIN_PLATFORMS } from '../platforms/builtin.ts';
import type { Manifest } from '../platforms/manifest.ts';

/** The path of the shared redirect URI. */
export const SHARED_PATH = '/console/connections/callback';
/**
 * Path of the other redirect URIs, with one more segment: the id of the organisation, or of the connection. Not below the shared path:
 * authorization servers that compare prefixes, as GitHub does, would accept any of them in its place.
 */
export const OWN_PATH = '/console/connected';

type OAuthAuth = Extract<Manifest['auth'], { type: 'oauth2' }>;

export type RedirectUri = {
  uri: string;
  /** Whether codes of servers that are not built in are accepted at the shared redirect URI, too: only in a broker with a single organisation. */
  isForOneOrganisation: boolean;
};

const BUILTIN_TOKEN_ENDPOINTS = new Set(
  Object.values(BUILTIN_PLATFORMS).flatMap(({ oauth }) => oauth?.token_endpoint ?? []),
);

/** Returns the redirect URI of an organisation, with which people register a client by hand. */
export const organisationRedirectUri = (baseUrl: string, organisationId: string): string =>
  `${baseUrl}${OWN_PATH}/${organisationId}`;

/** Returns the redirect URI of a connection. */
export const connectionRedirectUri = (baseUrl: string, connectionId: string): string =>
  `${baseUrl}${OWN_PATH}/${connectionId}`;

/** Whether the manifest, not the platform itself, selects the authorization server. */
export const namesServer = ({ kind, auth, oauth }: Pick<Manifest, 'kind' | 'auth' | 'oauth'>): boolean =>
  kind !== 'mcp' ||
  (auth.type === 'oauth2' && (auth.issuer ?? auth.token_endpoint ?? oauth?.token_endpoint) !== undefined);

/** Returns the redirect URI for the flows of a connection. */
export function redirectUriOf(
  manifest: Pick<Manifest, 'kind' | 'oauth'> & { auth: OAuthAuth },
  { baseUrl, organisationId, connectionId }: { baseUrl: string; organisationId: string; connectionId: string },
): RedirectUri {
  const { auth, oauth } = manifest;
  const token = auth.token_endpoint ?? oauth?.token_endpoint;
  const isBuiltin = auth.issuer === undefined && token !== undefined && BUILTIN_TOKEN_ENDPOINTS.has(token);
  const isRegisteredByHand = auth.client_id !== undefined && namesServer(manifest);
  const whose = isRegisteredByHand ? (auth.redirect_uri ?? (isBuiltin ? 'shared' : 'organisation')) : 'connection';
  if (whose === 'shared') return { uri: baseUrl + SHARED_PATH, isForOneOrganisation: !isBuiltin };
  const uri =
    whose === 'organisation'
      ? organisationRedirectUri(baseUrl, organisationId)
      : connectionRedirectUri(baseUrl, connectionId);
  return { uri, isForOneOrganisation: false };
}
