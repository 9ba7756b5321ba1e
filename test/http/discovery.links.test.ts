/** All addresses in discovery documents are served. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { isPublic } from '../../broker/http/routes/openapi.ts';
import { servedRoutes } from '../../broker/process/served-routes.ts';
import { expectStatus, send } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { addressesIn, addressesOfText, makeReader } from '../world/links.ts';
import { givenWorld } from '../world/world.ts';

/** Documents at one address for everybody that name other addresses. */
const DOCUMENTS = servedRoutes().filter(
  (one) => isPublic(one) && one.method === 'GET' && one.anyOrigin && !one.path.includes('{'),
);

const world = givenWorld();
const get = (path: string, init: RequestInit = {}) => send(world.running.baseUrl + path, init);

describe.each(DOCUMENTS.map(({ path }) => path))('%s', (path) => {
  test('names only addresses that are served', async () => {
    const { body, text } = await expectStatus(200, get(path));
    const reader = makeReader(world.running.baseUrl);
    // The contract test checks the paths of an OpenAPI document; addresses in its examples are invented.
    const { paths: _paths, ...shown } = path === '/v1/openapi.json' ? body : { ...body };
    const addresses = typeof body === 'string' ? addressesOfText(text) : addressesIn(shown);
    for (const address of new Set(addresses)) await reader.resolves(address, path);
  });

  test('may be cached, and read by pages of any site', async () => {
    const { headers } = await get(path);
    expect(headers.get('cache-control')).toMatch(/^public, max-age=\d+$/);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    const preflight = await get(path, { method: 'OPTIONS' });
    expect([preflight.status, preflight.headers.get('access-control-allow-methods')]).toEqual([204, 'GET, HEAD']);
    expect((await get(path, { method: 'HEAD' })).status).toBe(200);
  });
});

test('docs/agents.md has a row for each, with the seconds for which it may be cached', async () => {
  expect(DOCUMENTS.length).toBeGreaterThan(12);
  const page = readFileSync(join(ROOT, 'docs', 'agents.md'), 'utf8');
  const table = page.split('\n## Public documents\n')[1]!.split('\n## ')[0]!;
  const rows = [...table.matchAll(/^\| `(\/[^`]+)` \| (\d+) \|/gm)].map(([, path, seconds]) => `${path} ${seconds}`);
  const organisation = await world.organisation();
  await organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true });
  const { agentId } = await organisation.agent({ grants: {} });
  const served: string[] = [];
  for (const path of [...DOCUMENTS.map((one) => one.path), '/agents/{agentId}/did.json']) {
    const { headers } = await get(path.replace('{agentId}', agentId));
    served.push(`${path} ${/max-age=(\d+)/.exec(headers.get('cache-control')!)?.[1]}`);
  }
  expect(rows.toSorted()).toEqual(served.toSorted());
});

describe('/llms.txt and /agent-manifest.json', () => {
  test('list every public operation, with its place in the docs, and no other', async () => {
    const { text, headers } = await get('/llms.txt');
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(text).toMatch(/^# Agent Broker\n\n> .+\n\n/);
    const manifest = (await get('/agent-manifest.json')).body;
    const routes = servedRoutes().filter(isPublic);
    expect(manifest.capabilities).toHaveLength(routes.length);
    for (const { method, path, capability } of routes) {
      expect(text).toContain(`[${method} ${path}](${world.running.baseUrl}/docs#${capability})`);
      expect(manifest.capabilities).toContainEqual(expect.objectContaining({ method, path, capability }));
    }
    expect(text).toMatch(/trqp\/recognition\]\([^)]+\): .* \(agent or owner or without authentication\)$/m);
    const queries = manifest.capabilities.filter(({ path }: { path: string }) => path.startsWith('/v1/trqp/'));
    for (const query of queries)
      expect(query).toMatchObject({ authentication: ['agent', 'owner'], authentication_optional: true });
    const paths = manifest.capabilities.map(({ path }: { path: string }) => path);
    expect(paths.filter((path: string) => /^\/(owner|console|approve)/.test(path))).toEqual([]);
    expect(manifest).toMatchObject({ version: '0.79.1', base_url: world.running.baseUrl });
  });
});

describe('OAuth metadata', () => {
  test('the broker is the resource and its own authorization server', async () => {
    const { body } = await get('/.well-known/oauth-protected-resource');
    expect(body).toMatchObject({
      resource: world.running.baseUrl,
      authorization_servers: [world.running.baseUrl],
      bearer_methods_supported: ['header'],
    });
    expect((await get('/.well-known/oauth-authorization-server')).body.issuer).toBe(world.running.baseUrl);
  });
});

describe('/.well-known/aa-agent-schema', () => {
  test('accepts what POST /v1/register accepts, and refuses what it refuses', async () => {
    const { body: schema } = await get('/.well-known/aa-agent-schema');
    expect(schema.$schema).toBe('https://json-schema.org/draft/2020-12/schema');
    expect(schema.required).toEqual(['owner_id', 'agent_name', 'requested_scopes']);
    expect(schema.properties.agent_name['x-rfc7591']).toBe('client_name');
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const valid = ajv.compile(schema);
    const organisation = await world.organisation();
    const good = { ...schema.examples[0], owner_id: organisation.owner.id };
    const cases: [unknown, boolean][] = [
      [good, true],
      [{ ...good, agent_description: undefined }, true],
      [{ ...good, owner_id: undefined }, false],
      [{ ...good, agent_name: '' }, false],
      [{ ...good, agent_name: 'x'.repeat(101) }, false],
      [{ ...good, requested_scopes: [{ platformId: 'codehost', scopes: [] }] }, false],
      [{ ...good, requested_scopes: 'codehost:issues.read' }, false],
      [{ ...good, agent_name: ' triage' }, false],
      [{ ...good, agent_name: 'tri\nage' }, false],
      [{ ...good, redirect_uris: [] }, true],
    ];
    for (const [given, taken] of cases) {
      const text = JSON.stringify(given);
      expect(valid(JSON.parse(text)), text).toBe(taken);
      const answer = await get('/v1/register', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: text,
      });
      expect(answer.status, text).toBe(taken ? 202 : 400);
    }
  });
});
