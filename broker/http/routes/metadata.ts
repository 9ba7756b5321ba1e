/** Documents about the interface itself (specification, Discovery and health). */
import { z } from 'zod';
import { agentManifest, llmsText } from '../agent-manifest.ts';
import { listGuides } from '../guides.ts';
import type { JsonSchema } from '../openapi/schemas.ts';
import { Registering } from '../registration-request.ts';
import { json } from '../reply.ts';
import { type Route, route } from '../route.ts';
import { isPublic } from './openapi.ts';

/** The client metadata of RFC 7591 section 2 that correspond to our members. */
const NAMES = {
  agent_name: 'client_name',
  requested_scopes: 'scope',
} as const;

/**
 * Builds the schema from the one by which the route validates. RFC 7591 lets a server define further members of client metadata: ours are such
 * members, and those with a counterpart there name it as `x-rfc7591`.
 */
function registrationSchema(baseUrl: string): JsonSchema {
  const { properties, ...schema } = z.toJSONSchema(Registering, { io: 'input' });
  const named = Object.entries(properties ?? {}).map(([member, described]) => {
    const name = NAMES[member as keyof typeof NAMES];
    return [member, { ...(described as object), ...(name && { 'x-rfc7591': name }) }];
  });
  return {
    ...schema,
    $id: `${baseUrl}/.well-known/aa-agent-schema`,
    title: 'Agent registration',
    description: `Sent as JSON to ${baseUrl}/v1/register. The answer has client_id and scope, as a client information response of RFC 7591 section 3.2.1 does.`,
    properties: Object.fromEntries(named),
    examples: [
      {
        owner_id: '7d0b8a9e-2c55-4f0e-9a51-0d6f3f2b1c88',
        agent_name: 'triage',
        agent_description: 'Sorts new issues.',
        requested_scopes: [{ platformId: 'codehost', scopes: ['codehost:issues.read', 'codehost:issues.write'] }],
      },
    ],
  };
}

/** The documents change with the broker's version, and with what is switched on. */
const CACHING = { 'Cache-Control': 'public, max-age=300' };

const COMMON = { method: 'GET', auth: 'none', anyOrigin: true, errors: [] } as const;

const answer = (description: string, schema: z.ZodType, type?: string) => ({
  200: { description, schema, headers: ['Cache-Control'] as const, ...(type !== undefined && { type }) },
});

const Manifest = z
  .looseObject({
    name: z.string(),
    description: z.string(),
    version: z.string(),
    base_url: z.url(),
    proxy_base_url: z.url().describe('of /git and /proxy, which may have a host of their own'),
    documentation: z.url(),
    documents: z.record(z.string(), z.url()),
    capabilities: z.array(
      z.looseObject({ capability: z.string(), method: z.string(), path: z.string(), summary: z.string() }),
    ),
  })
  .meta({ id: 'AgentManifest' });

/** @param routes returns all routes, these included; called at each request */
export function metadata(routes: () => readonly Route[]): Route[] {
  // Read at the first request: the routes of /docs read them at the start, too.
  let guides: ReturnType<typeof listGuides> | undefined;
  const agentSchema = route({
    ...COMMON,
    path: '/.well-known/aa-agent-schema',
    capability: 'registrations.schema',
    summary: 'JSON Schema of what POST /v1/register takes, with the names that RFC 7591 has for it.',
    answers: answer('A JSON Schema, draft 2020-12.', z.looseObject({ $schema: z.url(), type: z.literal('object') })),
    handle: async ({ services: { broker } }) => json(200, registrationSchema(broker.baseUrl), CACHING),
  });
  const llms = route({
    ...COMMON,
    path: '/llms.txt',
    capability: 'llms',
    summary: 'The agent API as plain text, for language models.',
    answers: answer('An overview with links.', z.string(), 'text/plain'),
    handle: async ({ services: { broker } }) => {
      guides ??= listGuides();
      return {
        status: 200,
        type: 'text/plain; charset=utf-8',
        body: llmsText(broker, routes().filter(isPublic), guides),
        headers: CACHING,
      };
    },
  });
  const manifest = route({
    ...COMMON,
    path: '/agent-manifest.json',
    capability: 'manifest',
    summary: 'What can be done here, for programs.',
    answers: answer('The capabilities.', Manifest),
    handle: async ({ services: { broker } }) => json(200, agentManifest(broker, routes().filter(isPublic)), CACHING),
  });
  return [agentSchema, llms, manifest];
}
