/** Refusals of /proxy before a call, in the form of the platform's errors: unauthenticated clients learn nothing from them. */
import { beforeAll, describe, expect, test } from 'vitest';
import { BUILTIN_NAMES } from '../../broker/platforms/builtin-names.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { exchange } from '../world/raw.ts';
import { ALLOW_ALL, givenWorld, shared, startWorld } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent({ rules: ALLOW_ALL }));
const ask = rawClient(() => agent);

/** The content of an answer, without the parts that always differ. */
const toldOf = ({ status, headers, text }: Answer) => ({
  status,
  text: text.replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'id'),
  headers: [...headers].filter(([name]) => !/^(?:date|x-correlation-id|ratelimit.*)$/.test(name)),
});

describe('a refused token', () => {
  // Its breaker is opened by wrong signatures.
  let careless: TestAgent;
  beforeAll(async () => {
    careless = await organisation.agent();
  });
  const expired = () => {
    const iat = Math.floor(Date.now() / 1000) - 400;
    return careless.token({ iat, exp: iat + 60 });
  };
  const BAD: [string, string, () => Record<string, string>][] = [
    ['no token', 'missing_token', () => ({})],
    ['an expired token', 'token_expired', () => ({ authorization: `Bearer ${expired()}` })],
    [
      'a token with an invalid signature',
      'invalid_signature',
      () => ({ authorization: `Bearer ${careless.token().slice(0, -6)}AAAAAA` }),
    ],
    ['an unknown static key', 'invalid_token', () => ({ authorization: `Bearer abk_${'A'.repeat(43)}` })],
    ['a malformed token', 'invalid_token', () => ({ authorization: 'Bearer ghp_nobody' })],
  ];

  test.each(BAD)('%s gets an error in the form of the platform with this label', async (_, code, headersOf) => {
    const asked = async (label: string) => await ask('GET', `/proxy/${label}/x`, { bare: true, headers: headersOf() });
    const github = await asked('github');
    expect(github).toMatchObject({
      status: 401,
      body: { message: expect.stringContaining(`agent-broker: ${code}: `), documentation_url: expect.any(String) },
    });
    expect(github.headers.get('www-authenticate')).toMatch(/^Bearer/);
    expect(github.headers.get('x-should-retry')).toBe('false');
    expect((await asked('s3')).text).toMatch(/^<\?xml .*<Message>agent-broker: /);
    // Slack reports errors with status 200, and its client retries a 401 for half an hour.
    expect(await asked('slack')).toMatchObject({
      status: 200,
      body: { ok: false, error: expect.stringContaining(code) },
    });
    for (const label of ['demo-main', 'nowhere', 'constructor', '%zz'])
      expect(await asked(label), label).toMatchObject({ status: 401, body: { error: code, title: 'Unauthorized' } });
    await world.forgive();
  });

  test.each(BAD)('%s does not reveal whether a connection exists', async (_, _code, headersOf) => {
    const labels = [...BUILTIN_NAMES, 'nowhere'];
    const headers = headersOf();
    const asked = async () =>
      await Promise.all(
        labels.map(async (label) => toldOf(await ask('GET', `/proxy/${label}/x`, { bare: true, headers }))),
      );
    const before = await asked();
    const relabel = async (from: string, to: string) =>
      await world.db.updateTable('connections').set({ label: to }).where('label', '=', from).execute();
    for (const label of labels) {
      await relabel('demo-main', label);
      const [answer] = await Promise.all([ask('GET', `/proxy/${label}/items`)]);
      expect(answer.status, label).toBe(200);
      expect(await asked(), label).toEqual(before);
      await relabel(label, 'demo-main');
    }
    await world.forgive();
  });
});

test('a connection without a grant gets an error in that form too', async () => {
  const answer = await ask('GET', '/proxy/github/user');
  expect(answer).toMatchObject({ status: 404, body: { message: expect.stringContaining('It has: demo-main.') } });
});

test('an upgrade is refused in the form of the platform', async () => {
  const port = Number(new URL(world.running.baseUrl).port);
  const lines = ['GET /proxy/kubernetes/api/v1/x HTTP/1.1', 'Host: localhost', 'Upgrade: SPDY/3.1'];
  const answer = await expectStatus(501, exchange(port, [...lines, 'Connection: Upgrade, close', '', ''].join('\r\n')));
  expect(JSON.parse(answer.body)).toMatchObject({
    kind: 'Status',
    code: 501,
    message: expect.stringContaining('SPDY'),
  });
});

test('a rate-limited agent gets an error in the form of its own connection', async () => {
  const limited = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.001' });
  const other = await limited.organisation();
  await other.platform({ id: 'shaped', manifest: { error_body: { fault: '{code}', text: '{detail}' } } });
  const often = await other.agent({ rules: ALLOW_ALL, grants: { shaped: {} } });
  const read = rawClient(() => often);
  expect((await read('GET', '/proxy/shaped-main/items')).status).toBe(200);
  const refused = await read('GET', '/proxy/shaped-main/items');
  expect(refused).toMatchObject({ status: 429, body: { fault: 'rate_limited', text: expect.any(String) } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(refused.headers.has('x-should-retry')).toBe(false);
});

describe('a method that is not supported', () => {
  test.each(['OPTIONS', 'TRACE', 'PROPFIND', 'MKCOL', 'M-SEARCH'])('%s answers 405 and is recorded', async (method) => {
    const before = world.upstream.seen.length;
    const answer = await ask(method, '/proxy/demo-main/items', { headers: { 'x-note': 'not to be echoed' } });
    expect(answer).toMatchObject({ status: 405, body: { error: 'method_not_allowed' } });
    expect(answer.body.detail).toContain(`The method ${method} is not passed on.`);
    expect(answer.headers.get('allow')).toBe('GET, HEAD, POST, PUT, PATCH, DELETE');
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(answer.text).not.toContain('echoed');
    const { row } = await evidenceOf(world, agent, answer.headers.get('x-svc-audit-id') ?? '');
    expect(row).toMatchObject({
      state: 'final',
      result: 'errored',
      reason: 'method_not_allowed',
      platform_id: 'demo',
      method: null,
      detail: expect.stringContaining(method),
    });
    expect(world.upstream.seen).toHaveLength(before);
  });

  test('never counts as a strike', async () => {
    for (let time = 0; time < 40; time++) expect((await ask('OPTIONS', '/proxy/demo-main/items')).status).toBe(405);
    expect((await ask('GET', '/proxy/demo-main/items')).status).toBe(200);
  });

  test('with a body is answered as well', async () => {
    expect((await ask('PROPFIND', '/proxy/demo-main/items', { body: 'x'.repeat(100_000) })).status).toBe(405);
  });

  test('is refused like any request for a connection without a grant, a halted agent and an unauthenticated client', async () => {
    expect(await ask('OPTIONS', '/proxy/nowhere/items')).toMatchObject({ status: 404, body: { error: 'not_found' } });
    expect(await ask('OPTIONS', '/proxy/demo-main/items', { bare: true })).toMatchObject({
      status: 401,
      body: { error: 'missing_token' },
    });
    const halted = await organisation.agent({ rules: ALLOW_ALL });
    expect((await organisation.ask('POST', `/owner/agents/${halted.agentId}/suspend`, {})).status).toBe(200);
    expect(await rawClient(() => halted)('OPTIONS', '/proxy/demo-main/items')).toMatchObject({
      status: 403,
      body: { error: 'agent_halted' },
    });
  });
});
