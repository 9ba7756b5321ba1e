/**
 * The contract (specification, Versioning): specification, served routes and document agree. Three independent sources are compared: the transcribed
 * specification, the live route table, and, in the other files of this folder, live answers that are checked against the document.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { makeApp } from '../../broker/http/app.ts';
import { servedRoutes } from '../../broker/process/served-routes.ts';
import { send } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';
import { type Json, operationOf, operationsOf, servedDocument } from './document.ts';
import { NOT_YET_SERVED } from './not-yet-served.ts';
import { NEVER_DOCUMENTED, SPECIFICATION, type SpecAuth } from './specification.ts';

/** Routes outside the public surface, by path. Any other route has to be documented. */
const WITHOUT_CONTRACT = [
  { what: 'the owner API, which has a document of its own', paths: /^\/owner\// },
  { what: 'unmodified software: what it may ask is in each platform’s own document', paths: /^\/proxy\// },
  { what: 'clicks on buttons, told by Slack and Telegram', paths: /^\/notify\// },
  { what: 'pages for people', paths: /^\/$|^\/(console|approve|docs|me|verify)(\/|$)/ },
  { what: 'the remote MCP server and its OAuth server', paths: /^\/(mcp|oauth)(\/|$)/ },
];

/** Documented routes that are not in the specification. */
const BEYOND: readonly string[] = [
  'POST /access/v1/evaluation',
  'POST /access/v1/evaluations',
  'GET /.well-known/svc-secret-keys.json',
  'GET /.well-known/oauth-protected-resource/mcp',
  'GET /.well-known/svc-oauth-client/{id}',
  'GET /.well-known/svc-log/{organisation}',
  'GET /orgs/{organisation}/checkpoint',
  'GET /orgs/{organisation}/tile/{tile}',
  'GET /livez',
  'GET /metrics',
  'GET /readyz',
];

/** Routes of the specification that are served. */
const SERVED = SPECIFICATION.filter(({ method, path }) => !NOT_YET_SERVED.includes(`${method} ${path}`));
const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;

/** Served methods by path, with `{id}` for a parameter. */
const table = new Map<string, string[]>();
const world = givenWorld();
const document = shared(() => servedDocument(world.running.baseUrl));
const agent = shared(async () => (await world.demoOrganisation()).agent());
beforeAll(async () => {
  type Layer = { route?: { path: string | string[] | RegExp; methods: Record<string, boolean> } };
  const declared = servedRoutes();
  const { stack } = makeApp(world.running.services, declared).router as unknown as { stack: Layer[] };
  for (const { route } of stack) {
    if (!route) continue;
    // The last pattern covers all: a route that takes the rest of a path also accepts none.
    const last = [route.path].flat().at(-1)!;
    const path =
      last instanceof RegExp
        ? declared.find((one) => last.test(one.path))!.path
        : last.replaceAll(/[:*](\w+)/g, '{$1}');
    const methods = Object.keys(route.methods).filter((method) => method !== 'options');
    // The fallback behind all others, which answers other methods.
    if (methods.includes('_all')) continue;
    table.set(path, [...(table.get(path) ?? []), ...methods.map((method) => method.toUpperCase())]);
  }
  // Paths without parameters are no layers of Express: their methods are read from the answer to an unsupported one.
  for (const path of new Set(declared.map((one) => one.path).filter((one) => !one.includes('{')))) {
    const { status, headers } = await send(world.running.baseUrl + path, { method: 'LINK' });
    expect(status, path).toBe(405);
    const methods = headers
      .get('allow')!
      .split(', ')
      .filter((method) => method !== 'HEAD');
    table.set(path, [...(table.get(path) ?? []), ...methods]);
  }
});
const live = () => [...table].flatMap(([path, methods]) => methods.map((method) => `${method} ${path}`));

describe('the specification', () => {
  test('is transcribed completely, each route once', () => {
    expect(new Set(SPECIFICATION.map(nameOf)).size).toBe(SPECIFICATION.length);
    expect(SPECIFICATION).toHaveLength(46);
    const known = SPECIFICATION.map(nameOf);
    expect(NOT_YET_SERVED.filter((name) => !known.includes(name))).toEqual([]);
  });

  test.each(NOT_YET_SERVED.map((name) => [name] as const))('%s is not served yet', async (name) => {
    expect(live(), `${name} is served: take it out of test/contract/not-yet-served.ts`).not.toContain(name);
    expect(operationsOf(document)).not.toContain(name);
    const [method = '', path = ''] = name.split(' ');
    const answer = await send(world.running.baseUrl + path.replaceAll(/\{\w+\}/g, 'x'), { method });
    expect(answer.status, `${name} is served: take it out of test/contract/not-yet-served.ts`).toBe(404);
  });

  const ways: Record<SpecAuth, (names: string[]) => boolean> = {
    A: (names) => names.includes('agentToken') && !names.includes('ownerSession'),
    O: (names) => names.join() === 'ownerSession',
    none: (names) => names.length === 0,
    'A or O': (names) => names.includes('agentToken') && names.includes('ownerSession'),
    'none, A or O': (names) => names.includes('agentToken') && names.includes('ownerSession') && names.includes(''),
    basic: (names) => names.join() === 'gitBasic',
  };

  test.each(SERVED.map((one) => [nameOf(one), one] as const))('%s is documented, with every status', (name, one) => {
    const operation = operationOf(document, name);
    expect(operation, 'it is served and not documented').toBeDefined();
    const statuses = Object.keys(operation.responses);
    expect(one.statuses.filter((status) => !statuses.includes(String(status)))).toEqual([]);
    const security: Record<string, unknown>[] = operation.security;
    const names = security.flatMap((way) => (Object.keys(way).length === 0 ? [''] : Object.keys(way)));
    expect(ways[one.auth](names), `${one.auth}: ${names}`).toBe(true);
    const good = one.statuses.find((status) => status < 300)!;
    const types = Object.keys(operation.responses[good].content);
    expect(types.toSorted()).toEqual([...(one.types ?? ['application/json'])].toSorted());
    for (const status of one.statuses.filter((code) => code >= 400)) {
      const { content } = operation.responses[status];
      // A separate answer, such as the 410 of a DID document, has the media type of the successful one.
      expect([one.errors ?? 'application/json', ...types]).toContain(Object.keys(content ?? {})[0]);
    }
  });
});

describe('the live routes', () => {
  test('every public route is documented, and every documented route is served', () => {
    const documented = operationsOf(document);
    expect(documented.filter((name) => !live().includes(name))).toEqual([]);
    const elsewhere = (name: string) => WITHOUT_CONTRACT.some(({ paths }) => paths.test(name.split(' ')[1]!));
    const missing = live().filter((name) => !documented.includes(name) && !elsewhere(name));
    expect(missing, missing.join(', ')).toEqual([]);
    expect(documented.filter(elsewhere)).toEqual([]);
  });

  test('documents no route beyond the specification and the listed additions', () => {
    const known = [...SPECIFICATION.map(nameOf), ...BEYOND];
    expect(operationsOf(document).filter((name) => !known.includes(name))).toEqual([]);
  });

  test('no billing, admin or webhook route appears', () => {
    expect(Object.keys(document.paths).filter((path) => NEVER_DOCUMENTED.test(path))).toEqual([]);
    expect(
      '/v1/billing/x /owner/agents /v1/webhooks /notify/slack/{id}'
        .split(' ')
        .every((path) => NEVER_DOCUMENTED.test(path)),
    ).toBe(true);
  });

  test('exactly the routes of the table are served: other methods are answered with the allowed ones', async () => {
    const paths = [...table].filter(([path]) => !path.startsWith('/console/'));
    expect(paths.length).toBeGreaterThan(60);
    for (const [path, methods] of paths) {
      // /proxy reveals nothing without an agent's token.
      const isRaw = path.startsWith('/proxy/');
      const at = path.replace('{connection}', 'demo-main').replaceAll(/\{\w+\}/g, 'x');
      const answer = await send(world.running.baseUrl + at, {
        method: methods.includes('PATCH') ? 'OPTIONS' : 'PATCH',
        ...(isRaw && { headers: { authorization: `Bearer ${agent.token()}` } }),
      });
      expect(answer.status, path).toBe(405);
      const allowed = answer.headers.get('allow')!.split(', ');
      // To read it has an effect.
      const hasHead = methods.includes('GET') && !path.includes('/claim-key/');
      expect(allowed.toSorted(), path).toEqual([...methods, ...(hasHead ? ['HEAD'] : [])].toSorted());
    }
  });
});

describe('the document', () => {
  test('is OpenAPI 3.1, version 0.79.1, of this broker, and readable by pages of any site', async () => {
    expect([document.openapi, document.info.version]).toEqual(['3.1.0', '0.79.1']);
    expect(document.servers).toEqual([{ url: world.running.baseUrl }]);
    const { headers } = await send(`${world.running.baseUrl}/v1/openapi.json`, {});
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });

  test('contains what an author of a client needs', () => {
    for (const name of operationsOf(document)) {
      const operation = operationOf(document, name);
      for (const [status, response] of Object.entries<Json>(operation.responses)) {
        for (const [type, { schema }] of Object.entries<Json>(response.content ?? {}))
          if (/json/.test(type)) expect(schema, `${name} ${status} has no schema`).toBeDefined();
        if (status === '429') expect(response.headers, name).toHaveProperty('Retry-After');
        if (status === '401') expect(response.headers, name).toHaveProperty('WWW-Authenticate');
        if (/audit_unavailable|store_restored/.test(response.description))
          expect(response.headers, `${name} ${status}`).toHaveProperty('Retry-After');
        if (/405|method_not_allowed/.test(response.description))
          expect(response.headers, `${name} ${status}`).toHaveProperty('Allow');
      }
      if (operation.requestBody)
        expect(Object.values<Json>(operation.requestBody.content)[0].schema, `${name} has no body`).toBeDefined();
      expect(operation.summary, name).toMatch(/^[^ ].*[.:)]$/);
      // What a request has to bring for an answer that is there.
      const headers = (operation.parameters ?? []).flatMap((one: Json) => (one.in === 'header' ? [one.name] : []));
      if (operation.responses[304]) expect(headers, name).toContain('If-None-Match');
      if (operation.responses[204] && name.includes('/stream/')) expect(headers, name).toContain('Last-Event-ID');
      if (name.startsWith('POST ')) expect(operation, `${name} has no body`).toHaveProperty('requestBody');
    }
    // Requests have examples, which the linter validates.
    const withBody = operationsOf(document).filter((name) => operationOf(document, name).requestBody?.required);
    expect(withBody.length).toBeGreaterThan(12);
    for (const name of withBody.filter((one) => !/\/(?:lab|git)\//.test(one))) {
      const [media] = Object.values<Json>(operationOf(document, name).requestBody.content);
      expect(media.example, `${name}: broker/http/openapi/examples.ts has no example of its body`).toBeDefined();
    }
  });
});
