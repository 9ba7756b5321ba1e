/**
 * Redirect URIs. Each connection has its own, so that the response of one authorization server cannot be taken for the
 * response of another (mix-up attack, RFC 9700 section 4.4.2). Clients that were registered by hand at a server which the
 * manifest names may use the shared one, which is what such registrations have.
 */

/** The path of the shared redirect URI; a connection's own is one segment below it. */
export const CONNECTED_PATH = '/console/connections/callback';

/**
 * The redirect URI of a connection.
 *
 * @param namesServer whether the manifest, not the platform itself, selects the authorization server
 */
export function redirectUriOf(
  {
    client_id: clientId,
    redirect_uri: choice,
  }: { client_id?: unknown; redirect_uri?: 'shared' | 'connection' | undefined },
  { baseUrl, connectionId, namesServer }: { baseUrl: string; connectionId: string; namesServer: boolean },
): string {
  const isShared = clientId !== undefined && namesServer && choice !== 'connection';
  return `${baseUrl}${CONNECTED_PATH}${isShared ? '' : `/${connectionId}`}`;
}
