/** Builds the OpenAPI 3.1 document of a set of routes from their declarations, so that it describes what is served. */
import { present } from '../../runtime/present.ts';
import type { Limit } from '../rate-limits.ts';
import type { Route } from '../route.ts';
import { EXAMPLES } from './examples.ts';
import { HEADERS } from './headers.ts';
import { ERROR_SCHEMA, responsesOf } from './responses.ts';
import { type JsonSchema, makeSchemas, type Schemas } from './schemas.ts';
import { makeSecurity, type Security } from './security.ts';

/** The version of the interface (specification, Versioning). */
export const INTERFACE_VERSION = '0.79.1';

export type OpenApiDocument = {
  openapi: string;
  info: JsonSchema;
  servers: { url: string }[];
  tags: Tag[];
  paths: Record<string, Record<string, JsonSchema>>;
  components: Record<string, JsonSchema>;
};

export type Tag = { name: string; description?: string };

/** Title, purpose and address of the document. */
export type About = {
  title: string;
  description: string;
  baseUrl: string;
  /** Base URL of `/git` and `/proxy`, when it differs. */
  proxyUrl?: string;
  /** The tags in the order of the document, and the tag of each route; by path when absent. */
  tags?: { all: readonly Tag[]; of: (route: Route) => string };
  /** Whether the document covers browser sessions, too. */
  cookies?: boolean;
};

export function openApiDocument(routes: readonly Route[], about: About): OpenApiDocument {
  const { baseUrl, proxyUrl = baseUrl } = about;
  const schemas = makeSchemas();
  const security = makeSecurity({ baseUrl, cookies: about.cookies ?? true });
  const tagOf = about.tags?.of ?? tagByPath;
  const used = new Set(routes.map(tagOf));
  const paths: OpenApiDocument['paths'] = {};
  for (const route of routes) {
    const operations = paths[route.path] ?? {};
    paths[route.path] = operations;
    const operation = operationOf(route, tagOf(route), schemas, security);
    const isMoved = proxyUrl !== baseUrl && (route.auth === 'git' || route.auth === 'raw');
    operations[route.method.toLowerCase()] = isMoved ? { ...operation, servers: [{ url: proxyUrl }] } : operation;
  }
  const isNamed = ([name]: [string, unknown]) => JSON.stringify(paths).includes(`#/components/headers/${name}"`);
  return {
    openapi: '3.1.0',
    info: {
      title: about.title,
      version: INTERFACE_VERSION,
      description: about.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl }],
    tags: about.tags?.all.filter(({ name }) => used.has(name)) ?? [...used].sort().map((name) => ({ name })),
    paths,
    components: {
      schemas: { ...schemas.components, ErrorEnvelope: ERROR_SCHEMA },
      headers: Object.fromEntries(Object.entries(HEADERS).filter(isNamed)),
      securitySchemes: security.schemes(routes),
    },
  };
}

function operationOf(route: Route, tag: string, schemas: Schemas, security: Security): JsonSchema {
  const { summary, description, limit, role, auth } = route;
  const parameters = [
    ...pathParameters(route, schemas),
    ...queryParameters(route, schemas),
    ...headerParameters(route),
  ];
  return {
    operationId: operationId(route),
    summary,
    ...(description !== undefined && { description }),
    tags: [tag],
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && { requestBody: requestBody(route, schemas) }),
    ...(route.rawBody && { requestBody: rawBody(route.rawBody) }),
    responses: responsesOf(route, schemas),
    security: security.of(route),
    'x-capability': route.capability,
    ...(auth.startsWith('owner') && { 'x-role': role ?? 'viewer' }),
    ...(limit && { 'x-rate-limit': rateLimitOf(limit) }),
    ...(route.strangers && { 'x-rate-limit-without-bearer': rateLimitOf(route.strangers) }),
  };
}

const rateLimitOf = ({ perMinute, per }: Limit): JsonSchema => ({ per_minute: perMinute, per });

/** `owner.agents.suspend` → `ownerAgentsSuspend`; capabilities are unique among the routes of a document. */
export function operationId({ capability }: Pick<Route, 'capability'>): string {
  return capability.replaceAll(/[._-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** `agents` for /owner/agents/{id}, `approvals` for /v1/approvals/{id}. */
function tagByPath({ path }: Route): string {
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

const REQUEST_ID = {
  'X-Request-ID': { description: 'Returned with every answer.', example: 'b7f0c2' },
};

function headerParameters({ headers, dialect }: Route): JsonSchema[] {
  const all: NonNullable<Route['headers']> = { ...headers, ...(dialect === 'problem' && REQUEST_ID) };
  return Object.entries(all).map(([name, { description, example }]) => ({
    name,
    in: 'header',
    required: false,
    description,
    schema: { type: 'string' },
    ...(example !== undefined && { example }),
  }));
}

function requestBody(route: Route, schemas: Schemas): JsonSchema {
  const { body, bodyOptional, capability, example = EXAMPLES[capability]?.body } = route;
  const schema = schemas.of(present(body, 'body'), 'input');
  return {
    required: bodyOptional !== true,
    content: { 'application/json': { schema, ...(example !== undefined && { example }) } },
  };
}

const rawBody = (type: string): JsonSchema => ({
  required: true,
  content: { [type]: { schema: { type: 'string', format: 'binary' } } },
});
