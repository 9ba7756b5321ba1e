/** Configuration of the OAuth library: features, lifetimes and storage. */
import Provider, { errors } from 'oidc-provider';
import type { Broker } from '../broker.ts';
import type { SigningKey } from '../crypto/key-set.ts';
import { findLiveAuthorisation } from '../store/mcp-authorisations.ts';
import { adapterFor } from './adapter.ts';
import { clientFetch, DOCUMENT_BYTES, KEYS_BYTES } from './client-fetch.ts';
import { EXTRA_METADATA, normaliseClientMetadata } from './client-metadata.ts';
import { askBeforeErrorRedirect, errorPage } from './error-page.ts';
import {
  AUTHORISATION_SECONDS,
  CLIENT_AUTH_ALGORITHMS,
  CLIENT_AUTH_METHODS,
  MCP_SCOPES,
  mcpResource,
  OAUTH_PATHS,
} from './metadata.ts';
import { endsWithRefreshToken, revokeAccessTokens } from './revocation.ts';

const MINUTE = 60;
const DAY = 24 * 3600;
/** In seconds. Every call checks the authorisation, so revocation does not depend on this lifetime. */
const ACCESS_TOKEN_SECONDS = 15 * MINUTE;
const CODE_SECONDS = MINUTE;
const INTERACTION_SECONDS = 30 * MINUTE;
/** Lifetime of a refresh token: a client that is not used for this long needs a new consent. */
const REFRESH_SECONDS = 30 * DAY;
/** Returns a provider that signs its tokens with this key. */
export function makeProvider(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'log' | 'store' | 'keys' | 'publicOutbound'>,
  key: SigningKey,
): Provider {
  const { baseUrl } = broker;
  const { db } = broker.store;
  const resource = mcpResource(broker);
  const resources = new Set<string | undefined>([resource, `${baseUrl}/`]);
  const off = { enabled: false };
  const provider = new Provider(baseUrl, {
    adapter: adapterFor(broker),
    jwks: { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.kid, alg: 'ES256', use: 'sig' }] },
    routes: {
      authorization: OAUTH_PATHS.authorization,
      token: OAUTH_PATHS.token,
      registration: OAUTH_PATHS.registration,
      revocation: OAUTH_PATHS.revocation,
      jwks: '/v1/oauth/jwks.json',
    },
    features: {
      devInteractions: off,
      userinfo: off,
      rpInitiatedLogout: off,
      dPoP: off,
      pushedAuthorizationRequests: off,
      revocation: { enabled: true, allowedPolicy: (_, client, token) => token.clientId === client.clientId },
      registration: { enabled: true, issueRegistrationAccessToken: false },
      clientIdMetadataDocument: {
        enabled: broker.config.clientIdDocuments,
        ack: 'draft-02',
        cacheDuration: { min: MINUTE, max: 15 * MINUTE },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (context, asked) => {
          // RFC 8707 section 2: each of several resources has to be this broker's; the library checks only one. Letter case of scheme and host
          // is not significant (RFC 3986 section 6.2.2.1; MCP, Authorization, Canonical Server URI). For the broker as a whole, whose metadata
          // name this authorization server too, the token is the narrower one for /mcp.
          const all = [asked, context.oidc?.params?.resource ?? []].flat() as string[];
          if (all.some((one) => !resources.has(URL.parse(one)?.href)))
            throw new errors.InvalidTarget(`this server issues tokens for ${resource}`);
          return {
            scope: MCP_SCOPES.join(' '),
            audience: resource,
            accessTokenFormat: 'jwt',
            accessTokenTTL: ACCESS_TOKEN_SECONDS,
            jwt: { sign: { alg: 'ES256', kid: key.kid } },
          };
        },
      },
    },
    // No OpenID Connect: this is not a sign-in, and there are no ID tokens.
    scopes: [],
    claims: {},
    responseTypes: ['code'],
    pkce: { required: () => true },
    clientAuthMethods: CLIENT_AUTH_METHODS,
    assertJwtClientAuthClaimsAndHeader: refuseLooseAssertion,
    enabledJWA: {
      idTokenSigningAlgValues: ['ES256'],
      clientAuthSigningAlgValues: CLIENT_AUTH_ALGORITHMS,
    },
    clientDefaults: {
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      id_token_signed_response_alg: 'ES256',
    },
    extraClientMetadata: {
      properties: EXTRA_METADATA,
      validator: (_, _name, _value, metadata) => normaliseClientMetadata(metadata),
    },
    // Browser-based clients (such as debuggers) may use any origin: requests carry no cookies.
    clientBasedCORS: () => true,
    cookies: {
      names: { session: 'svc_oauth', interaction: 'svc_consent', resume: 'svc_resume' },
      short: { httpOnly: true, sameSite: 'lax', secure: baseUrl.startsWith('https:') },
      long: { httpOnly: true, sameSite: 'lax', secure: baseUrl.startsWith('https:') },
    },
    interactions: { url: (_, { uid }) => `${OAUTH_PATHS.consent}/${uid}` },
    findAccount: async (_, id) =>
      (await findLiveAuthorisation(db, id, broker.clock())) && { accountId: id, claims: () => ({ sub: id }) },
    // The subject is the agent; `authorisation` is the row that is checked at every call.
    formats: {
      customizers: {
        jwt: async (_, token, jwt) => {
          const live =
            token.kind === 'AccessToken' && (await findLiveAuthorisation(db, token.accountId, broker.clock()));
          if (!live) throw new errors.InvalidGrant('the authorisation has ended');
          jwt.payload.sub = live.agent_public_id;
          jwt.payload.authorisation = live.id;
        },
      },
    },
    issueRefreshToken: async (_, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: async () => false,
    rotateRefreshToken: ({ oidc: { params, entities } }) => {
      // The library compares the resource only after it has marked the token as used, which would end the access of a client that corrects it.
      if (
        params?.resource !== undefined &&
        ![entities.RefreshToken?.resource].flat().includes(params.resource as string)
      )
        throw new errors.InvalidTarget(`the refresh token is for ${resource}`);
      return true;
    },
    revokeGrantPolicy: endsWithRefreshToken(broker),
    ttl: {
      AccessToken: ACCESS_TOKEN_SECONDS,
      AuthorizationCode: CODE_SECONDS,
      Interaction: INTERACTION_SECONDS,
      RefreshToken: REFRESH_SECONDS,
      Grant: AUTHORISATION_SECONDS,
      Session: MINUTE,
    },
    fetch: clientFetch(broker),
    fetchResponseBodyLimits: { 'client_id metadata document': DOCUMENT_BYTES, jwks_uri: KEYS_BYTES },
    renderError: (context, told) => errorPage(context, told, broker.config),
  });
  // URLs are built from the public base URL, whatever host the request was sent to; see `handle`.
  provider.proxy = true;
  provider.use(askBeforeErrorRedirect);
  revokeAccessTokens(provider, broker);
  provider.on('server_error', (_, error) => broker.log.error({ err: error }, 'OAuth library error'));
  return provider;
}

/** Longest lifetime in seconds, because used assertions are stored until they expire. Clients use one to five minutes. */
const MAX_AHEAD = 3600;

/** Allowed clock skew of a client, in seconds. */
const MAX_SKEW = 60;

type Claims = Readonly<Record<string, unknown>>;

/**
 * The library's `assertJwtClientAuthClaimsAndHeader`, called after signature, issuer, audience and times were checked. An assertion for several
 * audiences could be replayed here by any of them, and one with a distant expiry would stay valid until then.
 *
 * @throws InvalidClientAuth
 */
function refuseLooseAssertion(_context: unknown, { aud, exp, iat }: Claims): void {
  if (Array.isArray(aud) && aud.length !== 1)
    throw new errors.InvalidClientAuth('the client_assertion is for more than one audience (aud)');
  if (typeof exp !== 'number' || !(exp <= Date.now() / 1000 + MAX_AHEAD))
    throw new errors.InvalidClientAuth(`the client_assertion must expire (exp) within ${MAX_AHEAD} seconds`);
  if (iat !== undefined && (typeof iat !== 'number' || !(iat <= Date.now() / 1000 + MAX_SKEW)))
    throw new errors.InvalidClientAuth('the client_assertion was issued in the future (iat)');
}
