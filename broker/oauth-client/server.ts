/** A platform's authorization server: its metadata, validated and cached. */

import * as client from 'openid-client';
import type { Broker } from '../broker.ts';
import { ProviderUnreachable, providerFetch } from '../egress/provider-fetch.ts';
import type { Instant } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import type { Registered } from './registered.ts';

/** Endpoints seldom change, but a person who fixes a server should not have to wait long. */
const FRESH_MS = 10 * 60_000;
const CACHE_SIZE = 200;
export const TIMEOUT_SECONDS = 15;

/** The properties needed to find a server. */
export type ServerOf = Pick<Registered, 'issuer' | 'endpoints' | 'platformId' | 'isMcp'>;
export type ServerFinder = (server: ServerOf) => Promise<client.ServerMetadata | OAuthProblem>;

/** Fetches server metadata; cached for a while, by issuer. */
export function serverFinder({ outbound, clock, log }: Pick<Broker, 'outbound' | 'clock' | 'log'>): ServerFinder {
  const kept = recentlyUsed<{ metadata: client.ServerMetadata; at: Instant }>(CACHE_SIZE);
  const fetch = providerFetch(outbound);

  const discover = async (issuer: string): Promise<client.ServerMetadata | OAuthProblem> => {
    const found = kept.get(issuer);
    if (found && Math.abs(clock() - found.at) < FRESH_MS) return found.metadata;
    const { host, protocol } = new URL(issuer);
    let unreachable = false;
    // RFC 8414 first; many servers have only OpenID Connect Discovery.
    for (const algorithm of ['oauth2', 'oidc'] as const)
      try {
        const configuration = await client.discovery(new URL(issuer), 'agent-broker', undefined, client.None(), {
          algorithm,
          [client.customFetch]: fetch,
          timeout: TIMEOUT_SECONDS,
          ...(protocol === 'http:' && { execute: [client.allowInsecureRequests] }),
        });
        const metadata = configuration.serverMetadata();
        // Otherwise one server could impersonate another (RFC 8414 section 3.3).
        if (!isSameIssuer(metadata.issuer, issuer)) continue;
        kept.set(issuer, { metadata, at: clock() });
        return metadata;
      } catch (error) {
        unreachable ||= [error, (error as Error).cause].some((one) => one instanceof ProviderUnreachable);
      }
    log.warn({ server: host, unreachable }, 'authorization server metadata cannot be used');
    return unreachable
      ? { problem: 'unreachable', detail: `The authorization server ${host} could not be reached. Try again shortly.` }
      : {
          problem: 'failed',
          detail: `The authorization server ${host} publishes no metadata with the issuer that the manifest names.`,
        };
  };

  const findServer: ServerFinder = async ({ issuer, endpoints, platformId, isMcp }) => {
    const discovered: Partial<client.ServerMetadata> | OAuthProblem =
      issuer === undefined ? {} : await discover(issuer);
    if (isProblem(discovered)) return discovered;
    const own = Object.fromEntries(Object.entries(endpoints).filter(([, value]) => value !== undefined));
    const merged = { ...discovered, ...own } as client.ServerMetadata;
    const { authorization_endpoint: authorize = '', token_endpoint: token = '' } = merged;
    // The library needs an issuer: without one the origin of the authorization endpoint is used, and compared with nothing. Of a discovered issuer the
    // server's own spelling counts, which is the one in `iss` of its responses and ID tokens.
    const metadata = {
      ...merged,
      issuer: discovered.issuer ?? (URL.canParse(authorize) ? new URL(authorize).origin : ''),
    };
    const insecure = (issuer ?? authorize).startsWith('http:');
    if (!isEndpoint(authorize, insecure) || !isEndpoint(token, insecure))
      return {
        problem: 'failed',
        detail: `The authorization server of ${platformId} has no authorization_endpoint or token_endpoint that is allowed.`,
      };
    for (const name of ['revocation_endpoint', 'registration_endpoint'] as const)
      if (metadata[name] !== undefined && !isEndpoint(metadata[name], insecure)) delete metadata[name];
    const methods = metadata.code_challenge_methods_supported;
    if (methods === undefined ? isMcp : !methods.includes('S256'))
      return {
        problem: 'failed',
        detail: `The authorization server of ${platformId} does not support PKCE with S256 (RFC 7636), so authorization codes could be stolen.`,
      };
    return metadata;
  };

  return async (server) => {
    const found = await findServer(server);
    // Whoever corrects a server tries again immediately.
    if (isProblem(found) && server.issuer !== undefined) kept.delete(server.issuer);
    return found;
  };
}

/**
 * Whether two texts name one issuer: identical, or one without a path and the same with a trailing slash, as many MCP servers name theirs (RFC 9728).
 * Both are the same address (RFC 3986 section 6.2.3), with the same metadata.
 */
export const isSameIssuer = (one: string, other: string): boolean => withoutSlash(one) === withoutSlash(other);

const withoutSlash = (issuer: string): string =>
  URL.canParse(issuer) && issuer === `${new URL(issuer).origin}/` ? issuer.slice(0, -1) : issuer;

/**
 * Returns why a server that the platform itself selected (RFC 9728) is refused because of the mix-up attack, or undefined. Its metadata
 * could name the authorization endpoint of another server, whose code would then be sent to the token endpoint of this one.
 * A server that sends `iss` in its responses (RFC 9207), or has its authorization endpoint at its own origin, cannot do that.
 */
export function mixUpRisk(
  {
    issuer,
    authorization_endpoint: authorize,
    authorization_response_iss_parameter_supported: iss,
  }: client.ServerMetadata,
  { discoverAt, endpoints, platformId }: Pick<Registered, 'discoverAt' | 'endpoints' | 'platformId'>,
): OAuthProblem | undefined {
  if (discoverAt === undefined || iss === true || endpoints.authorization_endpoint !== undefined) return undefined;
  const [own, asked] = [new URL(issuer), new URL(present(authorize, 'authorization endpoint'))];
  if (own.origin === asked.origin) return undefined;
  return {
    problem: 'failed',
    detail: `The authorization server that ${platformId} chose, ${own.host}, sends people to ${asked.host} and does not support the iss parameter (RFC 9207), so the code of another server could be sent to it. If ${asked.host} is right, name it in the manifest as authorization_endpoint, or name the issuer.`,
  };
}

/** Whether a URL may be an endpoint: https, or http where the whole server is on loopback; never `javascript:`, and never with userinfo. */
function isEndpoint(text: string, insecure: boolean): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash } = new URL(text);
  const secure = protocol === 'https:' || (insecure && protocol === 'http:');
  return secure && username === '' && password === '' && hash === '';
}
