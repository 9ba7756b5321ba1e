/** The authorization server for remote MCP clients: our own metadata; everything else is served by the OAuth library. */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Broker } from '../../broker.ts';
import {
  authorizationServerMetadata,
  mcpResource,
  OAUTH_PATHS,
  protectedResourceMetadata,
} from '../../oauth-server/metadata.ts';
import { refusePlainHttp } from '../plain-http.ts';
import { json, type Reply } from '../reply.ts';
import { type Context, type Route, route } from '../route.ts';

/** Schemas of the metadata of the OAuth server (RFC 8414, RFC 9728). */
const AuthorizationServer = z
  .looseObject({
    issuer: z.url(),
    jwks_uri: z.url(),
    response_types_supported: z.array(z.string()),
    grant_types_supported: z.array(z.string()),
    authorization_endpoint: z.url(),
    token_endpoint: z.url(),
    registration_endpoint: z.url(),
    service_documentation: z.url(),
  })
  .meta({ id: 'OAuthAuthorizationServer' });

const ProtectedResource = z
  .looseObject({
    resource: z.url(),
    authorization_servers: z.array(z.url()),
    bearer_methods_supported: z.array(z.string()),
  })
  .meta({ id: 'OAuthProtectedResource' });

const CACHING = { 'Cache-Control': 'public, max-age=300' };

const metadata = (
  path: string,
  capability: string,
  summary: string,
  schema: z.ZodType,
  of: (broker: Pick<Broker, 'baseUrl' | 'config'>) => unknown,
) =>
  route({
    method: 'GET',
    path,
    auth: 'none',
    anyOrigin: true,
    capability,
    summary,
    answers: { 200: { description: 'The metadata.', schema, headers: ['Cache-Control'] } },
    errors: ['not_found'],
    handle: async ({ services: { broker } }) => {
      refusePlainHttp(broker, 'not_found');
      return json(200, of(broker), CACHING);
    },
  });

/** Declares a path that the library serves, with a rate limit per address. */
const delegated = (
  method: 'GET' | 'POST',
  path: string,
  capability: string,
  summary: string,
  perMinute: number,
): Route =>
  route({
    method,
    path,
    auth: 'none',
    limit: { name: capability, perMinute, per: 'address' },
    capability,
    summary,
    answers: { 200: 'As the standard says.', 303: 'Leads on.', 400: 'As the standard says.' },
    errors: ['forbidden', 'rate_limited'],
    handle: async (context) => handOver(context as Context),
  });

function handOver({ services, request }: Pick<Context, 'services' | 'request'>): Reply {
  refusePlainHttp(services.broker);
  return { status: 200, handOver: (response) => services.authorization.handle(request as IncomingMessage, response) };
}

/** RFC 8414, RFC 9728 for the broker and for `/mcp`, RFC 6749, RFC 7591, RFC 7009. */
export const oauthRoutes: readonly Route[] = [
  metadata(
    '/.well-known/oauth-authorization-server',
    'oauth.server',
    'How to get a token for /mcp (RFC 8414).',
    AuthorizationServer,
    authorizationServerMetadata,
  ),
  metadata(
    '/.well-known/oauth-protected-resource',
    'oauth.resource',
    'Who issues tokens for this broker (RFC 9728).',
    ProtectedResource,
    (broker) => protectedResourceMetadata(broker, broker.baseUrl),
  ),
  metadata(
    '/.well-known/oauth-protected-resource/mcp',
    'oauth.resource.mcp',
    'Who issues tokens for /mcp (RFC 9728).',
    ProtectedResource,
    (broker) => protectedResourceMetadata(broker, mcpResource(broker)),
  ),
  delegated('GET', OAUTH_PATHS.authorization, 'oauth.authorize', 'Where a client sends its user (RFC 6749).', 60),
  delegated('GET', `${OAUTH_PATHS.authorization}/{uid}`, 'oauth.resume', 'Continues after the consent.', 60),
  delegated('POST', OAUTH_PATHS.token, 'oauth.token', 'Exchanges codes and refresh tokens (RFC 6749).', 120),
  delegated('POST', OAUTH_PATHS.registration, 'oauth.register', 'Makes a client known (RFC 7591).', 20),
  delegated('POST', OAUTH_PATHS.revocation, 'oauth.revoke', 'Ends an authorisation (RFC 7009).', 60),
];
