/** Documents about the interface itself (specification, Discovery and health). */
import { z } from 'zod';
import { agentManifest, llmsText } from '../agent-manifest.ts';
import { authorizationServerMetadata, protectedResourceMetadata } from '../oauth-metadata.ts';
import { registrationSchema } from '../registration-schema.ts';
import { json } from '../reply.ts';
import { type Route, route } from '../route.ts';
import { isPublic } from './openapi.ts';

/** It changes with the version of the broker, and with what is switched on. */
const CACHING = { 'Cache-Control': 'public, max-age=300' };

const COMMON = { method: 'GET', auth: 'none', anyOrigin: true, errors: [] } as const;

const answer = (description: string, schema: z.ZodType, type?: string) => ({
  200: { description, schema, headers: ['Cache-Control'] as const, ...(type !== undefined && { type }) },
});

const AuthorizationServer = z
  .looseObject({
    issuer: z.url(),
    jwks_uri: z.url(),
    response_types_supported: z.array(z.string()),
    grant_types_supported: z.array(z.string()),
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

const Manifest = z
  .looseObject({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    base_url: z.url(),
    documentation: z.url(),
    documents: z.record(z.string(), z.url()),
    capabilities: z.array(
      z.looseObject({ capability: z.string(), method: z.string(), path: z.string(), summary: z.string() }),
    ),
  })
  .meta({ id: 'AgentManifest' });

/** @param routes all routes, these among them; asked for at each request */
export function metadata(routes: () => readonly Route[]): Route[] {
  const authorizationServer = route({
    ...COMMON,
    path: '/.well-known/oauth-authorization-server',
    capability: 'oauth.authorization_server',
    summary: "Metadata of the broker's OAuth server (RFC 8414); it names only what is served.",
    answers: answer('The metadata.', AuthorizationServer),
    handle: async ({ governor: { broker } }) =>
      json(200, authorizationServerMetadata(broker.baseUrl, routes()), CACHING),
  });
  const protectedResource = route({
    ...COMMON,
    path: '/.well-known/oauth-protected-resource',
    capability: 'oauth.protected_resource',
    summary: 'Metadata of the agent API as a protected resource (RFC 9728).',
    answers: answer('The metadata.', ProtectedResource),
    handle: async ({ governor: { broker } }) => json(200, protectedResourceMetadata(broker.baseUrl), CACHING),
  });
  const agentSchema = route({
    ...COMMON,
    path: '/.well-known/aa-agent-schema',
    capability: 'registrations.schema',
    summary: 'JSON Schema of what POST /v1/register takes, with the names that RFC 7591 has for it.',
    answers: answer('A JSON Schema, draft 2020-12.', z.looseObject({ $schema: z.url(), type: z.literal('object') })),
    handle: async ({ governor: { broker } }) => json(200, registrationSchema(broker.baseUrl), CACHING),
  });
  const llms = route({
    ...COMMON,
    path: '/llms.txt',
    capability: 'llms',
    summary: 'The agent API as plain text, for language models.',
    answers: answer('An overview with links.', z.string(), 'text/plain'),
    handle: async ({ governor: { broker } }) => ({
      status: 200,
      type: 'text/plain; charset=utf-8',
      body: llmsText(broker.baseUrl, routes().filter(isPublic)),
      headers: CACHING,
    }),
  });
  const manifest = route({
    ...COMMON,
    path: '/agent-manifest.json',
    capability: 'manifest',
    summary: 'What can be done here, for programs.',
    answers: answer('The capabilities.', Manifest),
    handle: async ({ governor: { broker } }) =>
      json(200, agentManifest(broker.baseUrl, routes().filter(isPublic)), CACHING),
  });
  return [authorizationServer, protectedResource, agentSchema, llms, manifest];
}
