/** Requests a token with the client credentials grant (RFC 6749 §4.4). */
import type { Broker } from '../broker.ts';
import { clientBasic } from '../egress/client-basic.ts';
import type { Exchanged } from './exchanged.ts';
import { partOf } from './secret-part.ts';
import { askTokenEndpoint } from './token-endpoint.ts';
import type { ClientTokenRequest } from './token-request.ts';

/** Requests one token. */
export async function exchangeAsClient(
  broker: Pick<Broker, 'outbound' | 'clock'>,
  { platformId, connectionId, auth, parts }: ClientTokenRequest,
): Promise<Exchanged> {
  const { token_endpoint: tokenEndpoint, token_endpoint_auth_method: method, scopes = [], parameters } = auth;
  const id = partOf(parts, 'client_id');
  const secret = partOf(parts, 'client_secret');
  const form = {
    ...parameters,
    grant_type: 'client_credentials',
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  };
  const asked = { platformId, connectionId, tokenEndpoint };
  if (method === 'client_secret_post')
    return await askTokenEndpoint(broker, { ...asked, form: { ...form, client_id: id, client_secret: secret } });
  return await askTokenEndpoint(broker, { ...asked, headers: { authorization: clientBasic(id, secret) }, form });
}
