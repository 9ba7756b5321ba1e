/** What OAuth clients ask first (RFC 8414, RFC 9728). It names what is served, and nothing else. */
import type { Route } from './route.ts';

type Served = Pick<Route, 'method' | 'path'>;

/** Members of RFC 8414 section 2 that are addresses, and where they are when there is an OAuth server. */
const ENDPOINTS = {
  authorization_endpoint: 'GET /oauth/authorize',
  token_endpoint: 'POST /oauth/token',
  registration_endpoint: 'POST /oauth/register',
  revocation_endpoint: 'POST /oauth/revoke',
} as const;

/** What an OAuth server of this broker can, in the words of RFC 8414; nothing while there is none. */
export type OAuthAbilities = {
  response_types_supported: readonly string[];
  grant_types_supported: readonly string[];
  [more: string]: unknown;
};

const NOTHING: OAuthAbilities = { response_types_supported: [], grant_types_supported: [] };

/**
 * RFC 8414. Agents that sign for themselves need none of it: without an OAuth server it names the issuer, its keys and that no
 * grant is to be had.
 *
 * @param routes everything that is served: an endpoint is named when there is a route for it
 */
export function authorizationServerMetadata(
  baseUrl: string,
  routes: readonly Served[],
  abilities: OAuthAbilities = NOTHING,
): Record<string, unknown> {
  const served = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  const endpoints = Object.entries(ENDPOINTS)
    .filter(([, at]) => served.has(at))
    .map(([member, at]) => [member, baseUrl + at.slice(at.indexOf('/'))]);
  return {
    issuer: baseUrl,
    ...Object.fromEntries(endpoints),
    jwks_uri: `${baseUrl}/v1/oauth/jwks.json`,
    ...abilities,
    service_documentation: `${baseUrl}/docs`,
  };
}

/** RFC 9728 section 2, of the agent API as a whole. */
export const protectedResourceMetadata = (baseUrl: string): Record<string, unknown> => ({
  resource: baseUrl,
  authorization_servers: [baseUrl],
  bearer_methods_supported: ['header'],
  resource_name: 'Agent Broker',
  resource_documentation: `${baseUrl}/docs`,
});
