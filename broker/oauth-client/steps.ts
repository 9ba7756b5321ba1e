/** Requests to an authorization server: code flow with PKCE (RFC 6749, 7636, 9207, 9700), refresh, revocation (RFC 7009). */
import * as client from 'openid-client';
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import { clientSecretBasic } from '../egress/client-basic.ts';
import { SHORTEST_CREDENTIAL } from '../egress/credential-search/patterns.ts';
import { providerFetch } from '../egress/provider-fetch.ts';
import { present } from '../runtime/present.ts';
import { accountOf } from './account.ts';
import { problemOf } from './fault.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import { type Registered, requestedScopes } from './registered.ts';
import { mixUpRisk, type ServerFinder, type ServerOf, TIMEOUT_SECONDS } from './server.ts';
import type { Kept } from './stored-flow.ts';
import { tokenFetch } from './token-fetch.ts';

export type Tokens = {
  accessToken: Secret;
  refreshToken: Secret | undefined;
  /** `expires_in`, in seconds. */
  life: number | undefined;
  /** The granted scopes; undefined: the requested ones (RFC 6749 section 5.1). */
  scopes: readonly string[] | undefined;
};

/** What revoking takes of the broker's client at a server. */
export type RevokingClient = ServerOf & Pick<Registered, 'clientId' | 'clientSecret' | 'serverOptions'>;

export type Steps = {
  /** Returns the authorization URL for the browser, and the state to store. */
  begin(registered: Registered, flow: { state: string }): Promise<{ url: string; kept: Kept } | OAuthProblem>;
  /** Exchanges the code of a callback, given its query. */
  exchange(
    registered: Registered,
    query: URLSearchParams,
    flow: { state: string; kept: Kept },
  ): Promise<{ tokens: Tokens; account: string | null; server: string } | OAuthProblem>;
  /** Finds the server, which may take a while. The returned function sends one refresh request to it. */
  refreshing(registered: Registered): Promise<Refreshing | OAuthProblem>;
  /** `server`: the issuer of the tokens; they are sent to no other server. */
  revoke(client: RevokingClient, tokens: readonly Secret[], server: string): Promise<boolean | OAuthProblem>;
};

/** `server`: the issuer of the token; the token is sent to no other server. */
export type Refreshing = (refreshToken: Secret, server: string) => Promise<Tokens | OAuthProblem>;

/** Longest token in characters; a longer one does not fit into a header. */
const MAX_TOKEN_LENGTH = 16 * 1024;
const HEADER_SAFE = /^[\x21-\x7e]+$/;

/** Returns the steps, with their caches. */
export function oauthSteps(broker: Pick<Broker, 'outbound' | 'log'>, find: ServerFinder): Steps {
  const fetch = providerFetch(broker.outbound);

  const configure = async (registered: RevokingClient, withoutIdToken: boolean) => {
    const metadata = await find(registered);
    if (isProblem(metadata)) return metadata;
    const configuration = new client.Configuration(
      metadata,
      registered.clientId,
      undefined,
      authentication(metadata, registered),
    );
    configuration[client.customFetch] = tokenFetch(fetch, {
      tokenType: registered.serverOptions.token_type,
      withoutIdToken: withoutIdToken || registered.issuer === undefined,
    });
    configuration.timeout = TIMEOUT_SECONDS;
    if (metadata.token_endpoint?.startsWith('http:')) client.allowInsecureRequests(configuration);
    return configuration;
  };

  /** Runs a request; errors become problems. */
  const asking = async <T>({ platformId }: RevokingClient, work: () => Promise<T>): Promise<T | OAuthProblem> => {
    try {
      return await work();
    } catch (error) {
      return problemOf(error, platformId, broker.log);
    }
  };

  const moved = ({ platformId }: RevokingClient): OAuthProblem => ({
    problem: 'stale',
    detail: `The authorization server of ${platformId}, or the broker's client there, has changed. Connect again.`,
  });

  return {
    begin: (registered, { state }) =>
      asking(registered, async () => {
        const configuration = await configure(registered, false);
        if (isProblem(configuration)) return configuration;
        const misled = mixUpRisk(configuration.serverMetadata(), registered);
        if (misled) return misled;
        const { serverOptions, clientId } = registered;
        const redirectUri = registered.redirectUri.uri;
        const scopes = requestedScopes(registered, configuration.serverMetadata());
        const verifier = client.randomPKCECodeVerifier();
        const nonce = scopes.includes('openid') && registered.issuer !== undefined ? client.randomNonce() : null;
        const url = client.buildAuthorizationUrl(configuration, {
          ...serverOptions.authorization_parameters,
          redirect_uri: redirectUri,
          ...resourceOf(registered),
          ...(scopes.length > 0 && { scope: scopes.join(serverOptions.scope_separator ?? ' ') }),
          state,
          ...(nonce !== null && { nonce }),
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        });
        const server = serverOf(registered, configuration);
        return { url: url.href, kept: { verifier, nonce, server, clientId, redirectUri, scopes } };
      }),

    exchange: (registered, query, { state, kept }) =>
      asking(registered, async () => {
        const configuration = await configure(registered, false);
        if (isProblem(configuration)) return configuration;
        const metadata = configuration.serverMetadata();
        const server = serverOf(registered, configuration);
        if (server !== kept.server || registered.clientId !== kept.clientId) return moved(registered);
        const answer = answerTo(query, registered, metadata);
        if (!answer)
          return {
            problem: 'stale' as const,
            detail: 'This response is not from the authorization server of this flow. Start again.',
          };
        const given = await client.authorizationCodeGrant(
          configuration,
          new URL(`${kept.redirectUri}?${answer}`),
          {
            expectedState: state,
            pkceCodeVerifier: kept.verifier,
            ...(kept.nonce !== null && { expectedNonce: kept.nonce, idTokenExpected: true }),
          },
          resourceOf(registered),
        );
        const tokens = tokensOf(given, registered);
        if (isProblem(tokens)) return tokens;
        const account = await accountOf(broker, registered, configuration, tokens.accessToken, given.claims());
        return { tokens, account, server };
      }),

    refreshing: (registered) =>
      asking<Refreshing | OAuthProblem>(registered, async () => {
        const configuration = await configure(registered, true);
        if (isProblem(configuration)) return configuration;
        return (refreshToken, server) =>
          asking(registered, async () => {
            if (serverOf(registered, configuration) !== server) return moved(registered);
            const given = await client.refreshTokenGrant(configuration, refreshToken.reveal(), resourceOf(registered));
            return tokensOf(given, registered);
          });
      }),

    revoke: (registered, tokens, server) =>
      asking(registered, async () => {
        const configuration = await configure(registered, true);
        if (isProblem(configuration)) return configuration;
        if (serverOf(registered, configuration) !== server) return moved(registered);
        if (configuration.serverMetadata().revocation_endpoint === undefined) return false;
        // Sequentially: many servers revoke the second token with the first, and answer 200 for it anyway (RFC 7009).
        for (const token of tokens) await client.tokenRevocation(configuration, token.reveal());
        return true;
      }),
  };
}

const resourceOf = ({ resource }: Registered): Record<string, string> => (resource === undefined ? {} : { resource });

/** The identity of a server: its issuer in the server's own spelling, whose endpoints may change; without an issuer, its token endpoint. */
function serverOf({ issuer }: RevokingClient, configuration: client.Configuration): string {
  const metadata = configuration.serverMetadata();
  return issuer === undefined ? present(metadata.token_endpoint, 'token endpoint') : metadata.issuer;
}

/** RFC 8414 section 2: the default is client_secret_basic. */
function authentication(
  metadata: client.ServerMetadata,
  { clientSecret, serverOptions }: RevokingClient,
): client.ClientAuth {
  if (clientSecret === undefined) return client.None();
  const methods = metadata.token_endpoint_auth_methods_supported;
  const usual =
    methods && !methods.includes('client_secret_basic') && methods.includes('client_secret_post')
      ? 'client_secret_post'
      : 'client_secret_basic';
  const method = serverOptions.token_endpoint_auth_method ?? usual;
  return method === 'client_secret_post'
    ? client.ClientSecretPost(clientSecret.reveal())
    : clientSecretBasic(clientSecret);
}

/**
 * Returns the callback's parameters, without duplicates. `iss` is compared by the library (RFC 9207); for a server that is known only by its
 * endpoints, it must at least have the same origin.
 */
function answerTo(
  query: URLSearchParams,
  { issuer }: Registered,
  { authorization_endpoint: authorize }: client.ServerMetadata,
): URLSearchParams | undefined {
  const answer = new URLSearchParams();
  for (const name of ['code', 'error', 'state', 'iss'] as const) {
    const values = query.getAll(name);
    if (values.length > 1) return undefined;
    if (values[0] !== undefined) answer.set(name, values[0]);
  }
  if (answer.has('code') === answer.has('error')) return undefined;
  const iss = answer.get('iss');
  if (issuer === undefined && iss !== null) {
    if (!URL.canParse(iss) || new URL(iss).origin !== new URL(present(authorize, 'authorization endpoint')).origin)
      return undefined;
    answer.delete('iss');
  }
  return answer;
}

function tokensOf(given: client.TokenEndpointResponse, { platformId }: Registered): Tokens | OAuthProblem {
  const { access_token: token, token_type: type, refresh_token: refresh, expires_in: life, scope } = given;
  const usable = token.length >= SHORTEST_CREDENTIAL && token.length <= MAX_TOKEN_LENGTH && HEADER_SAFE.test(token);
  if (type !== 'bearer' || !usable || (refresh?.length ?? 0) > MAX_TOKEN_LENGTH)
    return {
      problem: 'failed',
      detail: `The authorization server of ${platformId} issued a token that cannot be used.`,
    };
  return {
    accessToken: new Secret(token),
    refreshToken: refresh === undefined ? undefined : new Secret(refresh),
    life,
    scopes: scope?.split(' ').filter(Boolean),
  };
}
