/** The documents are valid for third-party OpenAPI validators, and real answers match the served document. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { beforeAll, describe, expect, test } from 'vitest';
import { openApiDocument } from '../../broker/http/openapi/document.ts';
import type { Route } from '../../broker/http/route.ts';
import { isOwners } from '../../broker/http/routes/owner/openapi.ts';
import { ROUTES } from '../../broker/http/routes.ts';
import { type Answer, expectStatus, jsonPost, send } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';

const ABOUT = { title: 'A title', description: 'A description.', baseUrl: 'https://broker.example' };

// biome-ignore lint/suspicious/noExplicitAny: the document is looked at as any JSON.
type Json = any;
const documentOf = (routes: readonly Route[]): Json => JSON.parse(JSON.stringify(openApiDocument(routes, ABOUT)));

const OURS: [string, Route[]][] = [
  ['the owners’', ROUTES.filter(isOwners)],
  ['the others’', ROUTES.filter((one) => !isOwners(one))],
];

const AT = 'https://document.example/';
/** Each validator runs once or twice: optimising it would take longer than it saves. */
const UNOPTIMISED = { optimize: false };
const compilers = new WeakMap<object, (schema: Json) => ValidateFunction>();

/** Compiles a validator of one schema of a document. Referenced schemas of the document are compiled once. */
function compile(document: Json, schema: Json): ValidateFunction {
  const known = compilers.get(document) ?? makeCompiler(document);
  compilers.set(document, known);
  return known(schema);
}

function makeCompiler(document: Json): (schema: Json) => ValidateFunction {
  const ajv = new Ajv2020({
    strict: true,
    strictRequired: false,
    strictTypes: false,
    allErrors: true,
    code: UNOPTIMISED,
  });
  formats.default(ajv);
  ajv.addKeyword('components');
  ajv.addSchema({ $id: AT, components: { schemas: document.components.schemas } });
  const made = new Map<string, ValidateFunction>();
  return (schema) => {
    const text = JSON.stringify(schema).replaceAll('"#/components/', `"${AT}#/components/`);
    const found = made.get(text) ?? ajv.compile(JSON.parse(text));
    made.set(text, found);
    return found;
  };
}

/** Returns every schema in an operation. */
function schemasIn(value: Json): Json[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries<Json>(value).flatMap(([name, below]) => (name === 'schema' ? [below] : schemasIn(below)));
}

describe.each(OURS)('the document of %s routes', (_whose, routes) => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(documentOf(routes));
    expect(errors ?? []).toEqual([]);
    expect([valid, validator.version]).toEqual([true, '3.1']);
  });

  test('has only schemas that a validator compiles', () => {
    const document = documentOf(routes);
    const schemas = schemasIn(document.paths);
    expect(schemas.length).toBeGreaterThan(routes.length);
    // Most operations share the schemas of their refusals.
    for (const text of new Set(schemas.map((schema) => JSON.stringify(schema))))
      expect(() => compile(document, JSON.parse(text)), text).not.toThrow();
    expect(() => compile(document, { type: 'objekt' })).toThrow();
  });
});

test('control: a document with one wrong description is not valid OpenAPI 3.1', async () => {
  const [route] = ROUTES;
  const broken = documentOf([route!]);
  expect((await new Validator().validate(broken)).valid).toBe(true);
  broken.paths[route!.path][route!.method.toLowerCase()].responses.default.description = 5;
  expect((await new Validator().validate(broken)).valid).toBe(false);
});

describe('answers match the served document', () => {
  /** Values for path parameters, by the beginning of the path. */
  const values: Record<string, string> = {};
  const world = givenWorld();
  const organisation = shared(() =>
    world.organisation({ guardrails: [{ name: 'freeze', effect: 'deny', methods: ['DELETE'] }] }),
  );
  beforeAll(async () => {
    await organisation.platform();
    const agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'require_approval' }], 'p'),
      grants: { demo: { scopeList: ['demo:read'] } },
    });
    const read = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read', reason: 'why' };
    const held = await expectStatus(202, agent.act(read));
    const asked = await agent.post('/v1/access-request', { platform: 'demo', scope: 'demo:write', reason: 'because' });
    expect(asked.status, asked.text).toBe(202);
    const [request] = (await organisation.ask('GET', '/owner/access-requests')).body.access_requests;
    const registering = await send(
      `${world.running.baseUrl}/v1/register`,
      jsonPost({
        owner_id: organisation.owner.id,
        agent_name: 'newcomer',
        requested_scopes: [{ platformId: 'demo', scopes: ['demo:read'] }],
      }),
    );
    expect(registering.status, registering.text).toBe(202);
    const [registration] = (await organisation.ask('GET', '/owner/registrations')).body.registrations;
    expect((await organisation.ask('POST', '/owner/invites', { agent_name: 'invited' })).status).toBe(200);
    const scopes = { 'tools:all': ['tool *'] };
    const tools = { kind: 'mcp', base_url: 'https://mcp.example/mcp', scopes };
    await organisation.platform({ id: 'tools', manifest: tools, secret: null });
    const applied = await organisation.ask('POST', '/owner/governance/apply', {
      text: 'publish_identity_documents: true',
    });
    expect(applied.status, applied.text).toBe(200);
    const [apply] = (await organisation.ask('GET', '/owner/governance/applies')).body.applies;
    Object.assign(values, {
      '/owner/governance/applies/': apply.id,
      '/owner/platforms/{platform}/tools': 'tools',
      '/owner/registrations/': registration.id,
      '/owner/access-requests/': request.request_id,
      '/owner/approvals/': held.body.approval_id,
      '/owner/platforms/': 'demo',
      '/owner/policies/': 'p',
      '/owner/agents/': agent.agentId,
      '/owner/built-in-platforms/': 'github',
    });
  });
  const document = shared(async () => (await send(`${world.running.baseUrl}/owner/openapi.json`, {})).body);

  const isStream = ({ answers: { 200: answer } }: Route) => typeof answer === 'object' && answer.type !== undefined;
  // The data of a consent page needs the cookie of its browser, too: test/oauth-server/consent.test.ts.
  const isPages = ({ path }: Route) => path.startsWith('/oauth/consent/');
  const READS = ROUTES.filter(
    (one) => isOwners(one) && one.method === 'GET' && one.auth !== 'none' && !isStream(one) && !isPages(one),
  );

  const asOperator = (path: string): Promise<Answer> =>
    send(world.running.baseUrl + path, {
      headers: { authorization: `Bearer ${world.running.services.local.token.reveal()}` },
    });

  test.each(READS.map(({ path, auth }) => [path, auth] as const))('GET %s', async (path, auth) => {
    const [, value] = Object.entries(values).find(([beginning]) => path.startsWith(beginning)) ?? [];
    if (path.includes('{')) expect(value, 'give this test a value for the parameter of this path').toBeDefined();
    const filled = path.replace(/\{\w+\}/, value ?? '');
    const answer = auth === 'local' ? await asOperator(filled) : await organisation.ask('GET', filled);
    expect(answer.status, answer.text).toBe(200);
    const { schema } = document.paths[path].get.responses[200].content['application/json'];
    expect(schema, 'declare what is answered').toBeDefined();
    const valid = compile(document, schema);
    expect(valid(answer.body), `${answer.text} ${JSON.stringify(valid.errors)}`).toBe(true);
  });

  test('refusals match the document, too', async () => {
    const { paths } = document;
    const refusals: [string, string, Json, number][] = [
      ['/owner/audit', '/owner/audit?limit=x', undefined, 400],
      ['/owner/platforms/{platform}', '/owner/platforms/none', undefined, 404],
      ['/owner/policies/{id}', '/owner/policies/p', { rules: [{}] }, 400],
      ['/owner/connections', '/owner/connections', { platform: 'demo', label: 'demo-main', secret: 'x2345678' }, 409],
    ];
    for (const [path, at, body, status] of refusals) {
      const answer = await organisation.ask(body ? 'POST' : 'GET', at, body);
      expect(answer.status, answer.text).toBe(status);
      const operation = paths[path][body ? 'post' : 'get'];
      const valid = compile(document, operation.responses[status].content['application/json'].schema);
      expect(valid(answer.body), JSON.stringify(valid.errors)).toBe(true);
      expect(valid({ ...answer.body, error: 'something_else' })).toBe(false);
      expect(valid({ ...answer.body, detail: undefined })).toBe(false);
    }
  });
});
