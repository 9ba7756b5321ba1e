/** Discovery metadata for MCP clients: protected resource (RFC 9728) and authorization server (RFC 8414). */
import type { Broker } from '../broker.ts';

/** Paths of the authorization server. Its issuer is the base URL. */
export const OAUTH_PATHS = {
  authorization: '/oauth/authorize',
  token: '/oauth/token',
  registration: '/oauth/register',
  revocation: '/oauth/revoke',
  /** The page on which an owner consents; the interaction's id follows. */
  consent: '/oauth/consent',
} as const;

/** Scopes of tokens: reading (and requesting access), and writing. Grants and policies decide what is allowed in detail. */
export const MCP_SCOPES = ['mcp:read', 'mcp:write'] as const;
export type McpScope = (typeof MCP_SCOPES)[number];

export const RESPONSE_TYPES = ['code'] as const;
export const GRANT_TYPES = ['authorization_code', 'refresh_token'] as const;
export const CLIENT_AUTH_METHODS = ['none', 'private_key_jwt'] as const;
export const CLIENT_AUTH_ALGORITHMS = ['ES256', 'EdDSA', 'PS256', 'RS256'] as const;

/** Lifetime of an authorisation; after that an owner has to consent again. */
export const AUTHORISATION_SECONDS = 365 * 24 * 3600;

type Base = Pick<Broker, 'baseUrl'>;

/** OAuth 2.1 section 1.5: codes and tokens require https, except on loopback. */
export const isSecureEnough = ({ baseUrl }: Base): boolean => {
  const { protocol, hostname } = new URL(baseUrl);
  return protocol === 'https:' || /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
};

/** The resource indicator of `/mcp` (RFC 8707), which is the audience of its tokens. */
export const mcpResource = ({ baseUrl }: Base): string => `${baseUrl}/mcp`;

/** URL of the metadata of `/mcp`: RFC 9728 section 3.1, the path of the resource after the well-known path. */
const mcpMetadataUrl = ({ baseUrl }: Base): string => `${baseUrl}/.well-known/oauth-protected-resource/mcp`;

/** RFC 9728 section 2. `resource`: the requested one, `/mcp` or the whole broker. */
export const protectedResourceMetadata = (broker: Base, resource: string) => ({
  resource,
  authorization_servers: [broker.baseUrl],
  scopes_supported: [...MCP_SCOPES],
  bearer_methods_supported: ['header'],
  resource_name: 'Agent Broker',
  resource_documentation: `${broker.baseUrl}/docs`,
});

/** RFC 8414 section 2. Without support for client ID metadata documents, clients register (RFC 7591). */
export const authorizationServerMetadata = ({ baseUrl, config }: Pick<Broker, 'baseUrl' | 'config'>) => ({
  issuer: baseUrl,
  authorization_endpoint: baseUrl + OAUTH_PATHS.authorization,
  token_endpoint: baseUrl + OAUTH_PATHS.token,
  registration_endpoint: baseUrl + OAUTH_PATHS.registration,
  revocation_endpoint: baseUrl + OAUTH_PATHS.revocation,
  jwks_uri: `${baseUrl}/v1/oauth/jwks.json`,
  scopes_supported: [...MCP_SCOPES],
  response_types_supported: [...RESPONSE_TYPES],
  response_modes_supported: ['query'],
  grant_types_supported: [...GRANT_TYPES],
  token_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS],
  token_endpoint_auth_signing_alg_values_supported: [...CLIENT_AUTH_ALGORITHMS],
  revocation_endpoint_auth_methods_supported: [...CLIENT_AUTH_METHODS],
  revocation_endpoint_auth_signing_alg_values_supported: [...CLIENT_AUTH_ALGORITHMS],
  code_challenge_methods_supported: ['S256'],
  authorization_response_iss_parameter_supported: true,
  client_id_metadata_document_supported: config.clientIdDocuments,
  service_documentation: `${baseUrl}/docs`,
});

/** `WWW-Authenticate` (RFC 9728 section 5.1, RFC 6750 section 3): metadata URL and scopes for clients without a token. */
export const mcpChallenge = (broker: Base, scopes: readonly string[] = MCP_SCOPES): readonly string[] => [
  `resource_metadata="${mcpMetadataUrl(broker)}"`,
  `scope="${scopes.join(' ')}"`,
];
