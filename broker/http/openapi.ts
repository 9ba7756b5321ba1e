/** The OpenAPI 3.1 document of some of our routes, made of their declarations: what it says is what is served. */
import { sessionCookieName } from '../identity/session-cookie.ts';
import { ERROR_SCHEMA, HEADERS, responsesOf } from './openapi-responses.ts';
import { type JsonSchema, makeSchemas, type Schemas } from './openapi-schemas.ts';
import type { Limit } from './rate-limits.ts';
import type { Auth, Route } from './route.ts';

/** The version of the interface (specification, Versions). */
const VERSION = '0.79.1';

export type OpenApiDocument = {
  openapi: string;
  info: JsonSchema;
  servers: { url: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, JsonSchema>>;
  components: Record<string, JsonSchema>;
};

/** `about`: what the document is called, what it is for, and where the broker is reached. */
export function openApiDocument(
  routes: readonly Route[],
  about: { title: string; description: string; baseUrl: string },
): OpenApiDocument {
  const schemas = makeSchemas();
  const paths: OpenApiDocument['paths'] = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    paths[route.path]![route.method.toLowerCase()] = operationOf(route, schemas);
  }
  const used = new Set(routes.flatMap((route) => securityOf(route).flatMap((way) => Object.keys(way))));
  return {
    openapi: '3.1.0',
    info: {
      title: about.title,
      version: VERSION,
      description: about.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: about.baseUrl }],
    tags: [...new Set(routes.map(tagOf))].sort().map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...schemas.components, Error: ERROR_SCHEMA },
      headers: HEADERS,
      securitySchemes: Object.fromEntries(
        Object.entries(securitySchemes(about.baseUrl)).filter(([name]) => used.has(name)),
      ),
    },
  };
}

function operationOf(route: Route, schemas: Schemas): JsonSchema {
  const { summary, limit, role, auth } = route;
  const parameters = [...pathParameters(route, schemas), ...queryParameters(route, schemas)];
  return {
    operationId: operationId(route),
    summary,
    tags: [tagOf(route)],
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && { requestBody: requestBody(route, schemas) }),
    responses: responsesOf(route, schemas),
    security: securityOf(route),
    ...(auth.startsWith('owner') && { 'x-role': role ?? 'viewer' }),
    ...(limit && { 'x-rate-limit': rateLimitOf(limit) }),
    ...(route.strangers && { 'x-rate-limit-without-bearer': rateLimitOf(route.strangers) }),
  };
}

const rateLimitOf = ({ perMinute, per }: Limit): JsonSchema => ({ per_minute: perMinute, per });

/** `owner.agents.suspend` → `ownerAgentsSuspend`; capabilities are unique among the routes of a document. */
function operationId({ capability }: Route): string {
  return capability.replaceAll(/[._-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** `agents` for /owner/agents/{id}, `approvals` for /v1/approvals/{id}. */
function tagOf({ path }: Route): string {
  const [first = '', second] = path.split('/').slice(1);
  return (second ?? first).replace(/\.json$/, '');
}

function pathParameters({ path, params }: Route, schemas: Schemas): JsonSchema[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const { description, ...schema } = params?.[name] ? schemas.of(params[name], 'input') : { type: 'string' };
    return { name, in: 'path', required: true, ...(description !== undefined && { description }), schema };
  });
}

function queryParameters({ query }: Route, schemas: Schemas): JsonSchema[] {
  return Object.entries(query?.shape ?? {}).map(([name, field]) => {
    const { description, ...schema } = schemas.of(field, 'input');
    const required = !field.safeParse(undefined).success;
    return { name, in: 'query', required, ...(description !== undefined && { description }), schema };
  });
}

function requestBody({ body, bodyOptional }: Route, schemas: Schemas): JsonSchema {
  return {
    required: bodyOptional !== true,
    content: { 'application/json': { schema: schemas.of(body!, 'input') } },
  };
}

const securitySchemes = (baseUrl: string): Record<string, JsonSchema> => ({
  agentToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Signed by the agent (RS256), 60 seconds long, a fresh one for each request.',
  },
  mcpToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'An access token of /mcp, by OAuth 2.1.',
  },
  ownerSession: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A session of an owner.' },
  ownerCookie: {
    type: 'apiKey',
    in: 'cookie',
    name: sessionCookieName(baseUrl),
    description: 'The session of an owner in a browser.',
  },
  csrfHeader: {
    type: 'apiKey',
    in: 'header',
    name: 'X-Svc-Csrf',
    description: 'With any value: goes with the cookie where something changes, because no other site can send it.',
  },
  localCredential: {
    type: 'http',
    scheme: 'bearer',
    description: "The credential of the command line on the broker's machine.",
  },
});

type Way = Record<string, string[]>;

/** Which credentials a request needs: one way of the list; of a way everything that is in it. */
function securityOf({ auth, method }: Route): Way[] {
  const owner: Way[] = [
    { ownerSession: [] },
    method === 'GET' ? { ownerCookie: [] } : { ownerCookie: [], csrfHeader: [] },
  ];
  const ways: Record<Auth, Way[]> = {
    none: [],
    agent: [{ agentToken: [] }],
    mcp_client: [{ mcpToken: [] }],
    owner,
    agent_or_owner: [{ agentToken: [] }, ...owner],
    // An empty one: none is needed (OpenAPI 3.1, Security Requirement Object).
    anyone: [{}, { agentToken: [] }, { ownerSession: [] }],
    owner_or_local: [...owner, { localCredential: [] }],
    local: [{ localCredential: [] }],
  };
  return ways[auth];
}
