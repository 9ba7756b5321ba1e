/** Who calls `/mcp`: an MCP client with an access token of our own authorization server. */
import type { Broker } from '../broker.ts';
import { verifyCompact } from '../crypto/jws.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { findLiveAuthorisation } from '../store/mcp-authorisations.ts';
import type { AgentPrincipal, AuthRefusal } from './principal.ts';

/** RFC 9068 section 2.1: no child token, session or receipt has it. */
const ACCESS_TOKEN_TYPE = 'at+jwt';

/** `(token, source address)` → the agent that the client acts as, without facts about a platform; or why not. */
export type AuthenticateMcpClient = (token: string, source: string) => Promise<AgentPrincipal | AuthRefusal>;

/** What an access token says, as far as anybody needs it. */
export type AccessTokenClaims = { authorisation: string; client: unknown; agent: unknown; scopes: readonly string[] };

/** The claims of an access token for the resource `audience` (RFC 9068 section 4) that is not over; or why it is none. */
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
  if (exp * 1000 <= clock()) return refused('token_expired', 'The access token is over: use the refresh token.');
  return { authorisation, client, agent: sub, scopes: typeof scope === 'string' ? scope.split(' ') : [] };
}

const refused = (code: AuthRefusal['code'], detail: string): AuthRefusal => ({ kind: 'refused', code, detail });

/**
 * Checks tokens for the resource `audience`, and that the consent behind them has not ended: what an owner, the client or a
 * replayed refresh token ended is refused at the next call, on every replica.
 */
export function mcpClientAuthenticator(broker: Broker, facts: FactsReader, audience: string): AuthenticateMcpClient {
  return async (token, source) => {
    const claims = readAccessToken(broker, token, audience);
    if ('kind' in claims) return claims;
    const live = await findLiveAuthorisation(broker.store.db, claims.authorisation, broker.clock());
    const rows = live && live.agent_public_id === claims.agent ? await facts(live.agent_public_id, '', source) : [];
    if (!live || !rows[0])
      return refused('invalid_token', 'An owner took this access back, or it has ended. Connect again.');
    const access = { authorisationId: live.id, scopes: new Set(claims.scopes) };
    return { kind: 'agent', rows, agent: rows[0], source, sessionId: null, access };
  };
}
