/** Revocation (RFC 7009): what a client gives back ends at the next call, on every replica, whichever of its tokens it names. */
import { errors, type KoaContextWithOIDC, type default as Provider } from 'oidc-provider';
import { readAccessToken } from '../auth/authenticate-mcp-client.ts';
import type { Broker } from '../broker.ts';
import { endMcpAuthorisation } from '../store/mcp-authorisations.ts';
import { mcpResource } from './metadata.ts';

type Ending = Pick<Broker, 'store' | 'clock' | 'keys' | 'baseUrl'>;

/** The library's `revokeGrantPolicy`: with a refresh token that is given back, or that somebody may have copied, all ends. */
export function endsWithRefreshToken({ store, clock }: Ending) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    const id = oidc.route === 'revocation' ? oidc.entities.RefreshToken?.grantId : undefined;
    if (id !== undefined) await endMcpAuthorisation(store.db, id, 'client', clock());
    return true;
  };
}

/**
 * Lets `provider` revoke access tokens too. It revokes only what it stores: a JWT it refuses, once it knows which client asks.
 * Ours are of an authorisation, which ends, with its refresh tokens: RFC 7009 section 2.1 leaves that to the server, and a
 * client that gives a token back is done. A token that is over, another client's, or none at all ends nothing, and is
 * answered with 200 all the same (section 2.2).
 */
export function revokeAccessTokens(provider: Provider, broker: Ending): void {
  const refused = new WeakSet<KoaContextWithOIDC>();
  provider.on('revocation.error', (context, error) => {
    if (error instanceof errors.UnsupportedTokenType) refused.add(context);
  });
  provider.use<object, Pick<KoaContextWithOIDC, 'oidc'>>(async (context, next) => {
    await next();
    if (!refused.has(context)) return;
    const { client, params } = context.oidc;
    const claims = readAccessToken(broker, String(params?.token), mcpResource(broker));
    if (!('kind' in claims) && claims.client === client?.clientId)
      await endMcpAuthorisation(broker.store.db, claims.authorisation, 'client', broker.clock());
    context.status = 200;
    context.body = '';
  });
}
