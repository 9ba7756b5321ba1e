/** Authenticates MCP clients at `/mcp` by access tokens of the broker's own authorization server. */
import type { Broker } from '../broker.ts';
import { verifyCompact } from '../crypto/jws.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { findLiveAuthorisation } from '../store/mcp-authorisations.ts';
import { type AgentPrincipal, type AuthRefusal, refused } from './principal.ts';

/** RFC 9068 section 2.1. No child token, session or receipt has this type. */
const ACCESS_TOKEN_TYPE = 'at+jwt';

/** `(token, source address)` → the agent that the client acts as, without facts about a platform; or a refusal. */
export type AuthenticateMcpClient = (token: string, source: string) => Promise<AgentPrincipal | AuthRefusal>;

/** The claims of an access token that the broker uses. */
export type AccessTokenClaims = { authorisation: string; client: unknown; agent: unknown; scopes: readonly string[] };

/** Returns the claims of an access token for the resource `audience` (RFC 9068 section 4) that has not expired; or a refusal. */
export function readAccessToken(
  { keys, baseUrl, clock }: Pick<Broker, 'keys' | 'baseUrl' | 'clock'>,
  token: string,
  audience: string,
): AccessTokenClaims | AuthRefusal {
  const verified = verifyCompact(token, keys.set('issuing').verifyKeys, { typ: ACCESS_TOKEN_TYPE });
  if (!verified.ok) return refused('invalid_token', 'This is not an access token of this broker.');
  const { iss, aud, exp, authorisation, sub, scope, client_id: client } = verified.payload;
  if (iss !== baseUrl || aud !== audience || typeof authorisation !== 'string' || typeof exp !== 'number')
    return refused('invalid_token', `This access token is not for ${audience}.`);
  if (exp * 1000 <= clock()) return refused('token_expired', 'The access token has expired: use the refresh token.');
  return { authorisation, client, agent: sub, scopes: typeof scope === 'string' ? scope.split(' ') : [] };
}

/**
 * Verifies tokens for the resource `audience`, and that their authorisation is still active: an authorisation revoked by an owner, by
 * the client, or because of a replayed refresh token is refused at the next call, on every replica.
 */
export function mcpClientAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store' | 'keys'>,
  facts: FactsReader,
  audience: string,
): AuthenticateMcpClient {
  return async (token, source) => {
    const claims = readAccessToken(broker, token, audience);
    if ('kind' in claims) return claims;
    const live = await findLiveAuthorisation(broker.store.db, claims.authorisation, broker.clock());
    const rows = live && live.agent_public_id === claims.agent ? await facts(live.agent_public_id, '', source) : [];
    if (!live || !rows[0])
      return refused('invalid_token', 'This authorisation was revoked or has expired. Connect again.');
    const access = { authorisationId: live.id, scopes: new Set(claims.scopes) };
    return { kind: 'agent', rows, agent: rows[0], source, sessionId: null, access };
  };
}
