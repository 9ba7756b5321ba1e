import { describe, expect, test } from 'vitest';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { type Answer, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { expectEnvelope, expectReportHint, withoutCalls } from '../world/evidence.ts';
import { givenWorld, READ, shared, startWorld } from '../world/world.ts';

const basicOf = (by: TestAgent) => ({
  authorization: `Basic ${Buffer.from(`x:${by.token()}`).toString('base64')}`,
});

/** The limiter counts in the process, so one store is enough. */
describe('rate limits', () => {
  // A tenth of every limit: 60 actions, 3 times me.
  const world = givenWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.1' });
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  const other = shared(() => organisation.agent());

  const limited = (answer: Answer, name: string): void => {
    expectEnvelope(answer, 429, 'rate_limited');
    const seconds = Number(answer.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(answer.headers.get('ratelimit')).toBe(`"${name}";r=0;t=${seconds}`);
    // The error names the effective limit.
    const [, most] = /;q=(\d+);/.exec(answer.headers.get('ratelimit-policy')!)!;
    expect(answer.body.detail).toMatch(new RegExp(`^At most ${most} (?:failed )?requests? a minute here\\.`));
  };

  test.each<[string, string, number, (by: TestAgent) => Promise<Answer>]>([
    ['GET /v1/agents/me', 'agents-me', 3, (by) => by.get('/v1/agents/me')],
    ['GET /v1/agent/permissions', 'permissions', 60, (by) => by.get('/v1/agent/permissions')],
    ['POST /v1/actions', 'actions', 60, (by) => by.act(READ)],
    ['GET /v1/audit/{id}/receipt', 'receipts', 60, (by) => by.get(`/v1/audit/${crypto.randomUUID()}/receipt`)],
  ])('%s: each agent has its own limit', async (_route, name, limit, ask) => {
    const answers: Answer[] = [];
    // In groups: an agent may have at most 16 calls in flight.
    while (answers.length < limit) {
      const group = Math.min(15, limit - answers.length);
      answers.push(...(await Promise.all(Array.from({ length: group }, () => ask(agent)))));
    }
    for (const answer of answers) expect(answer.status).not.toBe(429);
    const left = answers.map((answer) => Number(/r=(\d+)/.exec(answer.headers.get('ratelimit')!)![1]));
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: limit }, (_, i) => i));
    const answer = await withoutCalls(world, () => ask(agent));
    limited(answer, name);
    expectReportHint(answer, 'rate_limited');
    expect((await ask(other)).status).not.toBe(429);
  });

  test('requests without a valid bearer use up no agent’s limit', async () => {
    const third = await organisation.agent();
    for (let i = 0; i < 5; i++)
      expect(
        (await third.get('/v1/agents/me', { authorization: `Bearer ${agent.token({ agent_id: third.agentId })}` }))
          .status,
      ).toBe(401);
    expect((await third.get('/v1/agents/me')).status).toBe(200);
  });

  test('signing in is limited by address, and X-Forwarded-For is ignored (AZ-11)', async () => {
    const signIn = (from?: string, headers = {}, token = 'x') =>
      send(`${world.running.baseUrl}/owner/sign-in`, { ...jsonPost({ token }, headers), ...(from && { from }) });
    expect((await signIn('127.0.0.1')).status).toBe(410);
    limited(await signIn('127.0.0.1', { 'x-forwarded-for': '192.0.2.1' }), 'sign-in');
    expect((await signIn('127.0.0.3')).status).toBe(410);
    // Failed guesses do not block a valid link from the same address.
    const { url } = await signInLink(world.running.broker, organisation.owner);
    expect((await signIn('127.0.0.1', {}, new URL(url).hash.slice(1))).status).toBe(200);
    limited(await signIn('127.0.0.1'), 'sign-in');
  });

  test.each([
    ['actions', 60, (by: TestAgent) => by.act(READ)],
    ['proxy', 120, (by: TestAgent) => by.get('/proxy/demo-main/items')],
    ['git', 60, (by: TestAgent) => by.get('/git/a/b.git/info/refs?service=git-upload-pack', basicOf(by))],
  ] as const)('%s: an agent and its children share one limit', async (name, limit, ask) => {
    const parent = await organisation.agent();
    const family = [parent, await childOf(world, organisation, parent), await childOf(world, organisation, parent)];
    for (let at = 0; at < limit; at += 15) {
      const group = Array.from({ length: Math.min(15, limit - at) }, (_, i) => ask(family[(at + i) % 3]!));
      for (const { status } of await Promise.all(group)) expect(status).not.toBe(429);
    }
    for (const one of family) {
      const { status, headers } = await ask(one);
      expect([status, headers.get('ratelimit')]).toEqual([429, expect.stringMatching(`^"${name}";r=0;`)]);
    }
  });

  test('DOS-10 an agent and its children share the limit of reports', async () => {
    const parent = await organisation.agent();
    const children = [await childOf(world, organisation, parent), await childOf(world, organisation, parent)];
    const report = (by: TestAgent) =>
      by.request('POST', '/v1/agents/self/diagnostics', {
        body: '{"message":"x"}',
        headers: { 'content-type': 'application/json' },
      });
    expect((await report(parent)).status).toBe(201);
    expect((await report(children[0]!)).status).toBe(201);
    limited(await report(children[1]!), 'diagnostics');
    expect((await report(other)).status).toBe(201);
  });
});

describe('refused bearers', () => {
  test('DOS-03 after 300 refusals a minute from an address, bearers are refused unchecked, except for agents that were accepted from there', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.02' });
    const organisation = await world.organisation();
    await organisation.platform();
    const [known, unknown] = [await organisation.agent(), await organisation.agent()];
    const ask = (bearer: string, from = '127.0.0.1') =>
      unknown.get('/v1/agents/me', { authorization: `Bearer ${bearer}` }, from);
    const stranger = () => ask(unknown.token({ agent_id: crypto.randomUUID() }));
    const { store } = world.running.broker;
    let reads = 0;
    const { read } = store;
    store.read = (...given) => {
      reads++;
      return read(...given);
    };
    expect((await ask(known.token())).status).toBe(200);
    // Its clock is behind, but its signature is valid.
    for (let i = 0; i < 10; i++) expect((await ask(known.token({ iat: 1_000, exp: 1_060 }))).status).toBe(401);
    for (let i = 0; i < 7; i++) expect((await stranger()).status).toBe(401);

    const before = reads;
    const refused = await stranger();
    expectEnvelope(refused, 429, 'rate_limited');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
    const odd = Buffer.from('{"agent_id":{"toString":1,"valueOf":1}}').toString('base64url');
    for (const bearer of ['x', 'x.x.x', 'x.bnVsbA.x', `x.${odd}.x`, unknown.token()])
      expect((await ask(bearer)).status).toBe(429);
    expect(reads).toBe(before);

    // A child of an agent that was accepted from there.
    const child = await childOf(world, organisation, known);
    expect((await child.get('/v1/agents/me')).status).not.toBe(429);
    // Whatever the result of its call, its bearer was checked.
    expect((await known.act(READ)).status).not.toBe(429);
    expect((await ask(unknown.token({ agent_id: known.agentId }))).body.error).toBe('invalid_signature');
    expect((await ask(unknown.token(), '127.0.0.3')).status).toBe(200);
  });
});

describe('limits of owners’ operations', () => {
  test('testing connections and simulating are limited by address', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.1' });
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const [{ id }] = (await organisation.ask('GET', '/owner/connections')).body.connections;
    const asks: [string, number, () => Promise<Answer>][] = [
      ['connection-tests', 2, () => organisation.ask('POST', `/owner/connections/${id}/test`)],
      ['simulations', 12, () => organisation.ask('POST', '/owner/simulate', { ...READ, agent_id: agent.id })],
    ];
    for (const [name, limit, ask] of asks) {
      for (let i = 0; i < limit; i++) expect((await ask()).status).toBe(200);
      const answer = await withoutCalls(world, ask);
      expectEnvelope(answer, 429, 'rate_limited');
      expect(answer.headers.get('ratelimit')).toContain(`"${name}";r=0`);
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });
});

describe('behind a trusted reverse proxy', () => {
  test('AZ-11 the client is the last address that the proxy itself saw; IPv6 counts by its /64', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.1', TRUSTED_PROXIES: '127.0.0.1' });
    const signIn = async (forwarded: string, from = '127.0.0.1') => {
      const headers = { 'content-type': 'application/json', 'x-forwarded-for': forwarded };
      const init = { method: 'POST', headers, body: '{"token":"x"}', from };
      return (await send(`${world.running.baseUrl}/owner/sign-in`, init)).status;
    };
    expect(await signIn('192.0.2.1')).toBe(410);
    expect(await signIn('192.0.2.1')).toBe(429);
    expect(await signIn('198.51.100.9, 192.0.2.1')).toBe(429);
    expect(await signIn('192.0.2.2')).toBe(410);
    expect(await signIn('2001:db8::1')).toBe(410);
    expect(await signIn('2001:db8:0:0:ffff::2')).toBe(429);
    expect(await signIn('2001:db8:0:1::1')).toBe(410);
    // The header of an untrusted peer is ignored.
    expect(await signIn('192.0.2.3', '127.0.0.4')).toBe(410);
    expect(await signIn('192.0.2.4', '127.0.0.4')).toBe(429);
  });
});

describe('the documented limits', () => {
  test('are those of the specification and the decisions', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const policies = await Promise.all(
      [agent.get('/v1/agents/me'), agent.act(READ), agent.get('/v1/agent/permissions')].map(async (answer) =>
        (await answer).headers.get('ratelimit-policy'),
      ),
    );
    expect(policies).toEqual(['"agents-me";q=30;w=60', '"actions";q=600;w=60', '"permissions";q=600;w=60']);
  });
});
