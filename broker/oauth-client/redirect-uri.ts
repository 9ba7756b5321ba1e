/**
 * Where an authorization server sends the browser back to. A connection has a redirect URI of its own, so that the answer
 * of one server cannot be taken for the answer of another (RFC 9700 section 4.4.2). Clients that somebody registered by
 * hand at a server which the manifest names may use one shared redirect URI, which is what such registrations have.
 */

/** The path of the shared redirect URI; a connection's own is one segment below it. */
export const CONNECTED_PATH = '/console/connections/callback';

/**
 * The redirect URI of a connection.
 *
 * @param namesServer whether the manifest, and not the platform itself, says which authorization server is used
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
