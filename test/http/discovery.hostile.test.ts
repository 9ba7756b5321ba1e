/** Public documents under hostile requests: they do not depend on the client, and contain no organisation's data. */
import { beforeAll, describe, expect, test } from 'vitest';
import { isPublic } from '../../broker/http/routes/openapi.ts';
import { servedRoutes } from '../../broker/process/served-routes.ts';
import { type Answer, send } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { furnish } from '../world/full-organisation.ts';
import { CANARY, givenWorld } from '../world/world.ts';

const ROUTES = servedRoutes();
/** Documents at one address for everybody. */
const DOCUMENTS = [
  ...ROUTES.filter((one) => isPublic(one) && one.method === 'GET' && one.anyOrigin && !one.path.includes('{')).map(
    ({ path }) => path,
  ),
  '/owner/openapi.json',
  '/docs',
  '/docs/reference',
  '/docs/agents',
  '/docs/agents.md',
];

/** Names, ids and a credential of an organisation with rows in every table. */
let owned: string[];
const world = givenWorld();
beforeAll(async () => {
  const { organisation, agent } = await furnish(world, 'secretive');
  owned = ['secretive', CANARY, organisation.id, organisation.owner.id, organisation.owner.email, agent.agentId];
});
const ask = (path: string, init: RequestInit = {}): Promise<Answer> => send(world.running.baseUrl + path, init);
/** Headers without those that differ in each answer. */
const headersOf = ({ headers }: Answer) =>
  Object.fromEntries(
    [...headers].filter(([name]) => !/^(date|x-correlation-id|ratelimit.*|connection|keep-alive)$/.test(name)),
  );

describe.each(DOCUMENTS)('%s', (path) => {
  test('is the same for every client and request', async () => {
    const { text } = await ask(path);
    const lies: Record<string, string>[] = [
      { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
      { forwarded: 'host=evil.example;proto=https' },
      { origin: 'https://evil.example', referer: 'https://evil.example/' },
      { authorization: 'Bearer x' },
      { accept: 'text/x-nothing;q=1, */*;q=0' },
      { 'accept-language': 'tlh', cookie: 'a=b' },
      { 'x-original-url': '/owner/agents', 'x-rewrite-url': '/owner/agents' },
      { 'x-http-method-override': 'DELETE' },
    ];
    for (const headers of lies) {
      const answer = await ask(path, { headers });
      expect([answer.status, answer.text === text], JSON.stringify(headers)).toEqual([200, true]);
      expect(answer.text).not.toContain('evil.example');
      expect(JSON.stringify(headersOf(answer))).not.toContain('evil.example');
    }
    const asked = await ask(`${path}?callback=evil&x=%00`);
    if (path.startsWith('/owner/')) expectEnvelope(asked, 400, 'invalid_request');
    else expect(asked.text).toBe(text);
  });

  test('HEAD returns the headers of GET without the body; other methods are answered with the allowed ones', async () => {
    const [got, head] = [await ask(path), await ask(path, { method: 'HEAD' })];
    expect([head.status, head.text]).toEqual([200, '']);
    expect(headersOf(head)).toEqual(headersOf(got));
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await ask(path, { method });
      expectEnvelope(answer, 405, 'method_not_allowed');
      expect(answer.headers.get('allow')).toBe('GET, HEAD');
    }
  });

  test('is at this address only', async () => {
    for (const other of [`${path}/`, `${path}%20`, `${path}%00`, path.toUpperCase(), `/${path}`, `${path};x`])
      if (other !== path) expect((await ask(other)).status, other).toBe(404);
  });

  test('contains no data of any organisation', async () => {
    const { text } = await ask(path);
    expect(owned.filter((one) => text.includes(one))).toEqual([]);
  });
});

describe('pages of other sites', () => {
  const asking = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
  const at = (path: string) => path.replaceAll(/\{\w+\}/g, 'x');

  test('may read public documents, without credentials (AZ-12)', async () => {
    for (const { path } of ROUTES.filter(({ anyOrigin }) => anyOrigin)) {
      const { status, headers } = await ask(at(path), { method: 'OPTIONS', headers: asking });
      expect([status, headers.get('access-control-allow-origin')], path).toEqual([204, '*']);
      expect(headers.get('access-control-allow-credentials'), path).toBeNull();
    }
  });

  test('are allowed nowhere else (AZ-12)', async () => {
    const closed = ROUTES.filter(({ anyOrigin, path }) => !anyOrigin && !path.startsWith('/console/'));
    expect(closed.length).toBeGreaterThan(80);
    const open = new Set(ROUTES.filter(({ anyOrigin }) => anyOrigin).map(({ path }) => path));
    for (const path of new Set(closed.map((one) => one.path))) {
      if (open.has(path)) continue;
      const { status, headers } = await ask(at(path), { method: 'OPTIONS', headers: asking });
      // Below /proxy every request without a token gets the same answer.
      expect(status, path).toBe(path.startsWith('/proxy/') ? 401 : 405);
      expect(headers.get('access-control-allow-origin'), path).toBeNull();
    }
  });
});
