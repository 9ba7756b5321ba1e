/** Sign-in by the authorization code flow with PKCE (RFC 6749, RFC 7636, RFC 9700), and bearers of the provider. */

import * as client from 'openid-client';
import type { Broker } from '../broker.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { OidcConfig } from '../environment/oidc.ts';
import { present } from '../runtime/present.ts';
import { type ProviderClient, ProviderFault, providerClient } from './provider-client.ts';
import { identityOf, isForUs, isVerified, mayIdentify } from './provider-identity.ts';
import { type ProviderKeys, providerKeys } from './provider-keys.ts';
import { logoutFault } from './provider-session.ts';
import type { NotSignedIn, ProviderSteps } from './provider-types.ts';
import { RECENT_SIGN_IN_SECONDS } from './recent-sign-in.ts';
import { groupsIn } from './roles-by-groups.ts';
import { CALLBACK_PATH, type SignInFlow } from './sign-in-flow.ts';

/** Returns the steps, with their caches: the discovered configuration, and the keys. */
export function providerSteps(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'log'>,
  oidc: OidcConfig,
  outbound: Outbound,
): ProviderSteps {
  const ownersUri = broker.baseUrl + CALLBACK_PATH;
  const provider = providerClient(broker, oidc, outbound);
  const keys = providerKeys({
    fetchKeys: provider.fetchKeys,
    onFailure: (error) => void provider.fault(error),
    clock: broker.clock,
  });
  const us = { clientId: oidc.clientId, baseUrl: broker.baseUrl };
  const { issuer } = oidc;

  /** Runs a request to the provider; errors become problems. */
  const asking = async <T>(work: () => Promise<T>): Promise<T | NotSignedIn> => {
    try {
      return await work();
    } catch (error) {
      return notSignedIn(error, provider);
    }
  };

  return {
    begin: (wish, { own, shared } = { own: ownersUri }) =>
      asking(async () => {
        const configuration = await provider.configuration();
        const redirectUri = shared !== undefined && namesItself(configuration.serverMetadata()) ? shared : own;
        const verifier = client.randomPKCECodeVerifier();
        const flow = { ...wish, state: client.randomState(), nonce: client.randomNonce(), verifier };
        const url = client.buildAuthorizationUrl(configuration, {
          redirect_uri: redirectUri,
          scope: oidc.scopes,
          state: flow.state,
          nonce: flow.nonce,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
          // With `max_age` the provider has to state in the ID token when the person signed in (OpenID Connect Core section 3.1.2.1).
          ...(wish.reauthenticate && { prompt: 'login', max_age: `${RECENT_SIGN_IN_SECONDS}` }),
        });
        return { url: url.href, redirectUri, flow };
      }),
    finish: (query, flow, { redirectUri, isNamed, claim } = { redirectUri: ownersUri, isNamed: false }) =>
      asking(async () => {
        const configuration = await provider.configuration();
        if (!isAnswerTo(query, flow, { server: configuration.serverMetadata(), isNamed }))
          return {
            problem: 'stale' as const,
            detail: 'This response does not belong to the sign-in that this browser started. Start again.',
          };
        const tokens = await client.authorizationCodeGrant(configuration, new URL(`${redirectUri}?${query}`), {
          expectedState: flow.state,
          expectedNonce: flow.nonce,
          pkceCodeVerifier: flow.verifier,
          idTokenExpected: true,
        });
        const claims = await verifiedClaims(keys, issuer, present(tokens.id_token, 'ID token'), {
          nonce: flow.nonce,
          ...us,
        });
        const isTold = claims.email !== undefined && isVerified(oidc, claims) !== undefined;
        const groups = oidc.groups && groupsIn(claims, oidc.groups);
        const saysAll =
          claim === undefined
            ? isTold && (oidc.groups === undefined || groups !== undefined)
            : claims[claim] !== undefined;
        const more = saysAll ? claims : await personOf(configuration, tokens.access_token, claims);
        // Address and verification status must come from the same response.
        const person = isTold ? claims : more;
        const identity = identityOf(oidc, claims.sub, person);
        if (!identity)
          throw new ProviderFault(
            `The ID token of the identity provider ${new URL(issuer).host} has no usable subject (sub).`,
          );
        const address = person.email ?? claims.email;
        return {
          identity,
          claims: claim === undefined ? claims : { ...more, ...claims },
          address: typeof address === 'string' ? address.slice(0, 254) : undefined,
          groups: groups ?? (oidc.groups && groupsIn(more, oidc.groups)),
        };
      }),
    verifyBearer: async (token) => {
      const verified = await keys.verify(token, issuer);
      if (verified.kind !== 'verified') return verified;
      if (mayIdentify(verified.header, verified.claims) && isForUs(verified.claims, us)) return verified;
      return {
        kind: 'refused',
        code: 'invalid_token',
        detail: 'This token of the identity provider has another audience than this broker (aud).',
      };
    },
    verifyLogout: async (token) => {
      const verified = await keys.verify(token, issuer, ['iat']);
      const now = broker.clock() / 1000;
      const detail = verified.kind === 'verified' ? logoutFault(verified, oidc.clientId, now) : undefined;
      return detail === undefined ? verified : { kind: 'refused', code: 'invalid_token', detail };
    },
  };
}

/** Whether the provider names its issuer in each authorization response (RFC 9207 section 3). */
const namesItself = ({ authorization_response_iss_parameter_supported: names }: client.ServerMetadata): boolean =>
  names === true;

/** Whether the callback has a code or an error, our state (RFC 6749 section 10.12) and, where present or required, the issuer (RFC 9207 section 2.4). */
function isAnswerTo(
  query: URLSearchParams,
  flow: SignInFlow,
  { server, isNamed }: { server: client.ServerMetadata; isNamed: boolean },
): boolean {
  const issuers = query.getAll('iss');
  const issued =
    issuers.length === 0 ? !isNamed && !namesItself(server) : issuers.length === 1 && issuers[0] === server.issuer;
  const outcomes = query.getAll('code').length + query.getAll('error').length;
  const states = query.getAll('state');
  return issued && outcomes === 1 && states.length === 1 && states[0] === flow.state;
}

/** Verifies the ID token's signature, too: the library accepts the token because it came over TLS. */
async function verifiedClaims(
  keys: ProviderKeys,
  issuer: string,
  token: string,
  expected: { nonce: string; clientId: string; baseUrl: string },
) {
  const verified = await keys.verify(token, issuer);
  const { host } = new URL(issuer);
  if (verified.kind === 'unavailable')
    throw new ProviderFault(
      `Cannot fetch the signing keys (JWKS) of the identity provider ${host}. Try again shortly.`,
    );
  if (verified.kind === 'refused') throw new ProviderFault(`The ID token of ${host} was refused: ${verified.detail}`);
  const { claims, header } = verified;
  if (claims.nonce !== expected.nonce || !mayIdentify(header, claims) || !isForUs(claims, expected))
    throw new ProviderFault(`The ID token of ${host} has another audience than this broker (aud).`);
  return claims;
}

/** Completes the claims from the userinfo endpoint, the only place of some providers' e-mail addresses (OpenID Connect Core section 5.4). */
async function personOf(
  configuration: client.Configuration,
  accessToken: string,
  claims: { sub?: string },
): Promise<Record<string, unknown>> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
  return await client.fetchUserInfo(configuration, accessToken, present(claims.sub, 'subject'));
}

function notSignedIn(error: unknown, provider: ProviderClient): NotSignedIn {
  if (error instanceof client.AuthorizationResponseError) {
    const word = /^[a-z_]{1,64}$/.test(error.error) ? error.error : 'an error';
    return { problem: 'declined', detail: `The identity provider did not sign you in (${word}). Start again.` };
  }
  // RFC 6749 section 5.2: the code was already used, has expired, or belongs to another verifier.
  if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant')
    return { problem: 'stale', detail: 'This sign-in was already finished, or took too long. Start again.' };
  return { problem: 'failed', detail: provider.fault(error).message };
}
