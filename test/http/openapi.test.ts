import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { TOKEN_PREFIXES, type TokenKind } from '../../broker/crypto/one-time-token.ts';
import { ERRORS } from '../../broker/http/errors.ts';
import { openApiDocument } from '../../broker/http/openapi/document.ts';
import { EXAMPLES } from '../../broker/http/openapi/examples.ts';
import { makeSchemas } from '../../broker/http/openapi/schemas.ts';
import { wholeNumber } from '../../broker/http/query.ts';
import { type Route, route } from '../../broker/http/route.ts';
import { isOwners } from '../../broker/http/routes/owner/openapi.ts';
import { ROUTES } from '../../broker/http/routes.ts';
import { expectStatus, send } from '../world/agent.ts';
import { givenWorld } from '../world/world.ts';

const ABOUT = { title: 'A title', description: 'A description.', baseUrl: 'https://broker.example' };

// biome-ignore lint/suspicious/noExplicitAny: the document is looked at as any JSON.
const documentOf = (routes: readonly Route[]): any => JSON.parse(JSON.stringify(openApiDocument(routes, ABOUT)));

/** Every `$ref` of a document. */
function refsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, below]) => (name === '$ref' ? [String(below)] : refsOf(below)));
}

test('the reasons of a 403 of a governed call are those of the specification, ActionDenied', () => {
  const { schemas } = documentOf(ROUTES.filter((one) => !isOwners(one))).components;
  const reasons = [
    'scope_not_granted',
    'agent_suspended',
    'agent_revoked',
    'platform_suspended',
    'no_permission_record',
    'circuit_breaker_open',
    'no_policy_assigned',
    'denied_by_guardrail',
    'denied_by_policy',
    'endpoint_scope_mismatch',
    'grant_expired',
    'recipient_not_allowed',
    'repo_not_allowed',
  ];
  expect(schemas.ActionDenied.properties.reason.enum).toEqual(reasons);
  expect(schemas.RefusedProblem.properties.reason.enum).toEqual(reasons);
});

describe('GET /owner/openapi.json', () => {
  // biome-ignore lint/suspicious/noExplicitAny: the document is looked at as any JSON.
  let served: any;
  const world = givenWorld();
  beforeAll(async () => {
    const answer = await expectStatus(200, send(`${world.running.baseUrl}/owner/openapi.json`, {}));
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    served = answer.body;
  });

  test('documents the owners’ routes only, of this broker, with the version of the interface', () => {
    expect(served.openapi).toBe('3.1.0');
    expect(served.info.version).toBe('0.79.1');
    expect(served.servers).toEqual([{ url: world.running.baseUrl }]);
    const listed = Object.entries<object>(served.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const owners = ROUTES.filter(isOwners).map(({ method, path }) => `${method} ${path}`);
    expect(listed.toSorted()).toEqual(owners.toSorted());
    expect(listed).toContain('GET /owner/openapi.json');
    for (const { path } of ROUTES.filter(({ auth }) => auth === 'agent'))
      expect(Object.keys(served.paths)).not.toContain(path);
    expect(served.components.securitySchemes).not.toHaveProperty('agentToken');
  });

  test('the same document is served again', async () => {
    expect((await send(`${world.running.baseUrl}/owner/openapi.json`, {})).body).toEqual(served);
  });

  test.each(ROUTES.filter(isOwners).map((one) => [`${one.method} ${one.path}`, one] as const))('%s', (_name, one) => {
    const operation = served.paths[one.path][one.method.toLowerCase()];
    expect(operation.operationId).toMatch(/^[a-z][A-Za-z0-9]+$/);
    expect(operation.summary).toBe(one.summary);
    for (const status of Object.keys(one.answers)) expect(operation.responses).toHaveProperty(status);
    for (const code of one.errors)
      expect(JSON.stringify(operation.responses[ERRORS[code]]?.content), code).toContain(`"${code}"`);
    if (one.auth !== 'none') expect(JSON.stringify(operation.responses[401].content)).toContain('"missing_token"');
    if (one.auth.startsWith('owner')) expect(operation['x-role']).toBe(one.role ?? 'viewer');
    const names = [...one.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const parameters: { name: string; in: string }[] = operation.parameters ?? [];
    expect(parameters.filter((each) => each.in === 'path').map(({ name }) => name)).toEqual(names);
    expect(Object.keys(one.params ?? {}).filter((name) => !names.includes(name))).toEqual([]);
    expect(parameters.filter((each) => each.in === 'query').map(({ name }) => name)).toEqual(
      Object.keys(one.query?.shape ?? {}),
    );
    expect(operation.requestBody !== undefined).toBe(one.body !== undefined);
  });

  test('every reference resolves, and every operation has a unique id', () => {
    const lost = refsOf(served).filter((ref) => {
      const path = ref.replace('#/', '').split('/');
      return path.reduce<unknown>((value, name) => (value as Record<string, unknown>)?.[name], served) === undefined;
    });
    expect(lost).toEqual([]);
    for (const routes of [ROUTES.filter(isOwners), ROUTES.filter((one) => !isOwners(one))]) {
      const ids = Object.values<object>(documentOf(routes).paths).flatMap((operations) =>
        Object.values<{ operationId: string }>(operations as never).map(({ operationId }) => operationId),
      );
      expect(ids.toSorted()).toEqual([...new Set(ids)].toSorted());
    }
  });
});

describe('the generator', () => {
  const answers = { 200: 'Something.' };
  const handle = async () => ({ status: 200 });

  test('takes parameters, body, answers and errors from the declaration', () => {
    const one = route({
      method: 'POST',
      path: '/owner/things/{id}/turn',
      auth: 'owner',
      role: 'approver',
      limit: { name: 'things', perMinute: 7, per: 'address' },
      capability: 'owner.things.turn_over',
      summary: 'Turns a thing.',
      params: { id: z.guid().describe('the id of the thing') },
      query: z.object({ times: wholeNumber(1, 9), how: z.enum(['left', 'right']).optional().describe('which way') }),
      body: z.strictObject({ force: z.boolean().default(false) }),
      bodyOptional: true,
      answers: {
        200: { description: 'Turned.', schema: z.object({ turned: z.int() }) },
        202: { description: 'Turning.', type: 'text/plain' },
        204: 'Nothing to turn.',
        409: { description: 'It is busy.', schema: z.object({ busy: z.boolean() }) },
      },
      errors: ['not_found', 'conflict'],
      handle,
    });
    const operation = documentOf([one]).paths['/owner/things/{id}/turn'].post;
    expect(operation).toMatchObject({
      operationId: 'ownerThingsTurnOver',
      tags: ['things'],
      'x-role': 'approver',
      'x-rate-limit': { per_minute: 7, per: 'address' },
      security: [{ ownerSession: [] }, { ownerCookie: [], csrfHeader: [] }],
    });
    expect(operation.parameters).toEqual([
      {
        name: 'id',
        in: 'path',
        required: true,
        description: 'the id of the thing',
        schema: { type: 'string', format: 'uuid' },
      },
      { name: 'times', in: 'query', required: true, schema: { type: 'integer', minimum: 1, maximum: 9 } },
      {
        name: 'how',
        in: 'query',
        required: false,
        description: 'which way',
        schema: { type: 'string', enum: ['left', 'right'] },
      },
    ]);
    expect(operation.requestBody).toEqual({
      required: false,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            properties: { force: { type: 'boolean', default: false } },
            additionalProperties: false,
          },
        },
      },
    });
    const { responses } = operation;
    expect(Object.keys(responses)).toEqual('200 202 204 400 401 403 404 409 413 429 default'.split(' '));
    expect(responses[200].content['application/json'].schema).toEqual({
      type: 'object',
      properties: { turned: { type: 'integer', minimum: -9007199254740991, maximum: 9007199254740991 } },
      required: ['turned'],
    });
    expect(Object.keys(responses[202].content)).toEqual(['text/plain']);
    expect(responses[204]).not.toHaveProperty('content');
    expect(responses[429].headers).toHaveProperty('Retry-After');
    expect(responses[200].headers).toHaveProperty('RateLimit');
    expect(responses[401].headers).toHaveProperty('WWW-Authenticate');
    // A status that is both an answer and an error has either schema.
    expect(responses[409].content['application/json'].schema.anyOf).toHaveLength(2);
    expect(JSON.stringify(responses[409])).toContain('"enum":["conflict"]');
    expect(Object.keys(documentOf([one]).components.securitySchemes)).toEqual([
      'ownerSession',
      'ownerCookie',
      'csrfHeader',
    ]);
    expect(documentOf([one]).components.securitySchemes.ownerCookie.name).toBe('__Host-svc_owner');
  });

  test('a minimal route gives a minimal entry', () => {
    const one = route({
      method: 'GET',
      path: '/health',
      auth: 'none',
      capability: 'health',
      summary: 's',
      answers,
      errors: [],
      handle,
    });
    const { tags, paths, components } = documentOf([one]);
    expect(tags).toEqual([{ name: 'health' }]);
    expect(Object.keys(paths['/health'].get.responses)).toEqual(['200', 'default']);
    expect(paths['/health'].get.security).toEqual([]);
    expect(components.securitySchemes).toEqual({});
  });

  test('a pattern without regard to letter case is an error, because the document could not say so', () => {
    const hexadecimal = z.object({ hash: z.string().regex(/^[0-9a-f]+$/i) });
    expect(() => makeSchemas().of(hexadecimal, 'input')).toThrow('has no flags');
  });

  test('schemas with an id occur once, under their name; two schemas with one name are an error', () => {
    const thing = z.object({ id: z.guid() }).meta({ id: 'TestThing' });
    const tree: z.ZodType = z.object({ name: z.string(), below: z.array(z.lazy(() => tree)) });
    const schemas = makeSchemas();
    expect(schemas.of(thing, 'output')).toEqual({ $ref: '#/components/schemas/TestThing' });
    expect(schemas.of(z.array(thing), 'output')).toEqual({
      type: 'array',
      items: { $ref: '#/components/schemas/TestThing' },
    });
    expect(schemas.of(z.object({ tree, json: z.json() }), 'output')).toMatchObject({ type: 'object' });
    expect(Object.keys(schemas.components)).toEqual(['TestThing', 'Unnamed1', 'Unnamed2']);
    expect(
      refsOf(schemas.components).every((ref) => ref.replace('#/components/schemas/', '') in schemas.components),
    ).toBe(true);
    const other = z.object({ id: z.int() });
    z.globalRegistry.remove(thing);
    expect(() => schemas.of(other.meta({ id: 'TestThing' }), 'output')).toThrow('TestThing');
  });
});

test('one-time tokens in examples have the real prefixes, and addresses in examples are served', () => {
  const texts: { name: string; text: string }[] = [];
  const collect = (value: unknown, name: string): void => {
    if (typeof value === 'string') texts.push({ name, text: value });
    else if (typeof value === 'object' && value !== null)
      for (const [member, below] of Object.entries(value)) collect(below, Array.isArray(value) ? name : member);
  };
  collect(EXAMPLES, '');
  const known = new Set<string>([...Object.values(TOKEN_PREFIXES), 'agt_']);
  // All tokens in examples are truncated.
  const documents = JSON.stringify([documentOf(ROUTES), EXAMPLES]);
  const begun = [...documents.matchAll(/\b([a-z]{3}_)[\w-]*…/g)].map(([, prefix]) => prefix!);
  expect(begun.length).toBeGreaterThan(6);
  expect(begun.filter((prefix) => !known.has(prefix))).toEqual([]);
  const kinds: Record<string, TokenKind[]> = {
    request_token: ['access_request'],
    registration_token: ['registration'],
    bootstrap_token: ['bootstrap'],
    bind_secret: ['invite'],
    consent_token: ['consent'],
  };
  const tokens = texts.filter(({ name }) => name in kinds);
  expect(tokens.length).toBeGreaterThan(3);
  for (const { name, text } of tokens)
    expect(
      kinds[name]!.some((kind) => text.startsWith(TOKEN_PREFIXES[kind])),
      `${name}: ${text}`,
    ).toBe(true);
  const routes = ROUTES.map(({ path }) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`));
  for (const { text } of texts.filter(({ name }) => name === 'poll_url'))
    expect(
      routes.some((route) => route.test(text)),
      text,
    ).toBe(true);
});
