/** Revocation (RFC 7009): revoking any of a client's tokens is effective at the next call, on every replica. */
import { errors, type KoaContextWithOIDC, type default as Provider } from 'oidc-provider';
import { readAccessToken } from '../auth/authenticate-mcp-client.ts';
import type { Broker } from '../broker.ts';
import { endMcpAuthorisation } from '../store/mcp-authorisations.ts';
import { mcpResource } from './metadata.ts';

type Ending = Pick<Broker, 'store' | 'clock' | 'keys' | 'baseUrl'>;

/** The library's `revokeGrantPolicy`: a revoked or reused refresh token revokes the whole authorisation. */
export function endsWithRefreshToken({ store, clock }: Ending) {
  return async ({ oidc }: KoaContextWithOIDC): Promise<boolean> => {
    const id = oidc.route === 'revocation' ? oidc.entities.RefreshToken?.grantId : undefined;
    if (id !== undefined) await endMcpAuthorisation(store.db, id, 'client', clock());
    return true;
  };
}

/**
 * Adds revocation of access tokens. The library revokes only what it stores, and refuses JWTs once the client is authenticated.
 * Revoking one of our access tokens revokes its authorisation with its refresh tokens: RFC 7009 section 2.1 leaves that to the
 * server. An expired, foreign or invalid token has no effect and is answered with 200 too (section 2.2).
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
