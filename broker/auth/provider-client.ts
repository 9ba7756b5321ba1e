/** Client of the OpenID Connect provider: discovered on first use, refreshed periodically. */
import type { JSONWebKeySet } from 'jose';
import * as client from 'openid-client';
import type { Broker } from '../broker.ts';
import { clientSecretBasic } from '../egress/client-basic.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import { ProviderUnreachable, providerFetch } from '../egress/provider-fetch.ts';
import type { OidcConfig } from '../environment/oidc.ts';

/** Endpoints seldom change; the cached configuration stays in use while it is refreshed. */
const FRESH_MS = 3600_000;
const TIMEOUT_SECONDS = 15;

/** A failure of the provider. The message is for people, and contains nothing that the provider or a browser sent. */
export class ProviderFault extends Error {}

export type ProviderClient = {
  /** Throws ProviderFault while the provider cannot be used; the next call retries. */
  configuration(): Promise<client.Configuration>;
  /** The published keys, fetched now. Throws ProviderFault. */
  fetchKeys(): Promise<JSONWebKeySet>;
  /** Maps an error of the library or of egress to a message for people, and logs the details. */
  fault(error: unknown): ProviderFault;
};

export function providerClient(
  { clock, log }: Pick<Broker, 'clock' | 'log'>,
  oidc: OidcConfig,
  outbound: Outbound,
): ProviderClient {
  const { host, protocol } = new URL(oidc.issuer);
  const fetch = providerFetch(outbound);
  let known: { configuration: client.Configuration; at: number } | undefined;
  let asking: Promise<client.Configuration> | undefined;

  const fault = (error: unknown): ProviderFault => {
    if (error instanceof ProviderFault) return error;
    const unreachable = [error, (error as { cause?: unknown })?.cause].find(
      (one) => one instanceof ProviderUnreachable,
    );
    log.warn({ provider: host, problem: problemOf(error) }, 'identity provider request failed');
    return new ProviderFault(
      unreachable
        ? `The identity provider ${host} could not be reached: ${(unreachable as Error).message} Try again shortly.`
        : `The identity provider ${host} sent a response that cannot be used. The broker's log has the details.`,
    );
  };

  const discover = async (): Promise<client.Configuration> => {
    const found = await client.discovery(new URL(oidc.issuer), oidc.clientId, undefined, client.None(), {
      [client.customFetch]: fetch,
      timeout: TIMEOUT_SECONDS,
      ...(protocol === 'http:' && { execute: [client.allowInsecureRequests] }),
    });
    const server = found.serverMetadata();
    // Must be identical (OpenID Connect Discovery section 4.3): tokens are compared with it.
    if (server.issuer !== oidc.issuer) {
      log.error(
        { configured: oidc.issuer, discovered: server.issuer.slice(0, 255) },
        'issuer in the discovery document differs from the configured one: configure exactly that',
      );
      throw new ProviderFault(
        `The issuer in the discovery document of ${host} differs from the configured one. The broker's log has both.`,
      );
    }
    const configuration = new client.Configuration(server, oidc.clientId, undefined, authentication(server, oidc));
    configuration[client.customFetch] = fetch;
    configuration.timeout = TIMEOUT_SECONDS;
    if (protocol === 'http:') client.allowInsecureRequests(configuration);
    return configuration;
  };

  const load = (): Promise<client.Configuration> => {
    asking ??= discover()
      .then((configuration) => {
        known = { configuration, at: clock() };
        return configuration;
      })
      .catch((error) => {
        throw fault(error);
      })
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };

  const configuration: ProviderClient['configuration'] = async () => {
    if (!known) return await load();
    if (Math.abs(clock() - known.at) > FRESH_MS) void load().catch(() => {});
    return known.configuration;
  };

  const fetchKeys = async (): Promise<JSONWebKeySet> => {
    try {
      const { jwks_uri: uri = '' } = (await configuration()).serverMetadata();
      if (!URL.canParse(uri) || (protocol === 'https:' && !uri.startsWith('https:')))
        throw new Error('its discovery document has no https jwks_uri');
      const answer = await fetch(uri, {
        method: 'GET',
        headers: { accept: 'application/json, application/jwk-set+json' },
      });
      if (answer.status !== 200) throw new Error(`fetching its key set (JWKS) returned status ${answer.status}`);
      return (await answer.json()) as JSONWebKeySet;
    } catch (error) {
      throw fault(error);
    }
  };

  return { configuration, fetchKeys, fault };
}

/** RFC 8414 section 2: the default is client_secret_basic. */
function authentication(
  { token_endpoint_auth_methods_supported: methods }: client.ServerMetadata,
  { clientSecret }: OidcConfig,
): client.ClientAuth {
  if (clientSecret === undefined) return client.None();
  const basic = methods === undefined || methods.includes('client_secret_basic');
  return basic || !methods.includes('client_secret_post')
    ? clientSecretBasic(clientSecret)
    : client.ClientSecretPost(clientSecret.reveal());
}

/** RFC 6749 sections 4.1.2.1 and 5.2, RFC 6750 section 3.1, OpenID Connect Core section 3.1.2.6. */
const ERROR_CODES: readonly unknown[] = [
  ...['invalid_request', 'invalid_client', 'invalid_grant', 'unauthorized_client', 'unsupported_grant_type'],
  ...['invalid_scope', 'access_denied', 'server_error', 'temporarily_unavailable', 'invalid_token'],
  ...['unsupported_response_type', 'login_required', 'consent_required', 'interaction_required'],
];

/**
 * Describes an error for the log: the messages of the libraries down to the root cause, never a body or a token. Of the provider's response only an
 * error code that the standards define, and no description, which may quote the request with the client secret or the code.
 */
function problemOf(error: unknown): string {
  if (error instanceof client.ResponseBodyError)
    return `${ERROR_CODES.includes(error.error) ? error.error : 'an error that no standard defines'} (status ${error.status})`;
  const words: string[] = [];
  for (let one = error; one instanceof Error && words.length < 4; one = one.cause)
    // A parser's message quotes its input.
    words.push(one instanceof SyntaxError ? 'it is not JSON' : one.message);
  return words.join('; ').slice(0, 300);
}
