/** Rate limits of AuthZEN and TRQP (specification, Limits). The limiter counts in the process, so one store is enough. */
import { describe, expect, test } from 'vitest';
import { type Answer, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { expectProblem } from '../world/problem.ts';
import { startWorld, type World } from '../world/world.ts';

const limited = (answer: Answer, name: string, left = 0): void => {
  expectProblem(answer, 429, 'rate_limited');
  const seconds = Number(answer.headers.get('retry-after'));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(answer.headers.get('ratelimit')).toBe(`"${name}";r=${left};t=${seconds}`);
};

const query = (agent: TestAgent) => ({
  entity_id: agent.agentId,
  authority_id: 'did:web:localhost',
  action: '*',
  resource: '*',
});

const strangerOf =
  (world: World, body: unknown) =>
  (path: string, from?: string, headers: Record<string, string> = {}): Promise<Answer> =>
    send(`${world.running.baseUrl}/v1/trqp/${path}`, {
      ...jsonPost(body, headers),
      ...(from !== undefined && { from }),
    });

describe('TRQP without a token', () => {
  test('AZ-11 the 61st query per minute from one address is a 429, on both routes together; X-Forwarded-For has no effect', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
    const organisation = await world.organisation();
    const agent = await organisation.agent({ grants: {} });
    const ask = strangerOf(world, query(agent));
    const from = '127.0.0.1';
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, i) => ask(['recognition', 'authorization'][i % 2]!, from)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    for (const path of ['recognition', 'authorization']) {
      const answer = await ask(path, from, { 'x-forwarded-for': '192.0.2.1', 'x-request-id': 'r-61' });
      limited(answer, 'trqp-public');
      expect(answer.headers.get('x-request-id')).toBe('r-61');
    }
    // A malformed query is limited, too: the limit is checked before the body.
    limited(await strangerOf(world, {})('recognition', from), 'trqp-public');
    expect((await ask('recognition', '127.0.0.2')).status, 'another address').toBe(200);
    const own = await agent.post('/v1/trqp/recognition', query(agent), {}, from);
    expect(own.status, 'with a token, from the same address').toBe(200);
    expect(own.headers.get('ratelimit')).toMatch(/^"trqp";r=1199;/);
  });

  test('AZ-11 behind a trusted proxy, the client is the address that the proxy names; for IPv6, a /64 is one client', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.02', TRUSTED_PROXIES: 'loopback' });
    const agent = await (await world.organisation()).agent({ grants: {} });
    const ask = (client: string) =>
      strangerOf(world, query(agent))('recognition', undefined, { 'x-forwarded-for': client });
    expect((await ask('2001:db8:0:1::1')).status).toBe(200);
    limited(await ask('2001:db8:0:1:ffff::2'), 'trqp-public');
    expect((await ask('2001:db8:0:2::1')).status).toBe(200);
    // Addresses that the client sent itself are to the left of the one added by the proxy.
    expect((await ask('203.0.113.9, 198.51.100.7')).status).toBe(200);
    limited(await ask('203.0.113.10, 198.51.100.7'), 'trqp-public');
    limited(await ask('::ffff:198.51.100.7'), 'trqp-public');
  });

  test('a wrong bearer neither uses up the limit of anonymous clients nor bypasses it', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.02' });
    const agent = await (await world.organisation()).agent({ grants: {} });
    const ask = strangerOf(world, query(agent));
    for (let i = 0; i < 5; i++)
      expectProblem(await ask('recognition', undefined, { authorization: 'Bearer x' }), 401, 'invalid_token');
    expect((await ask('recognition')).status).toBe(200);
    limited(await ask('recognition'), 'trqp-public');
    expectProblem(await ask('recognition', undefined, { authorization: 'Bearer x' }), 401, 'invalid_token');
  });
});

test('AuthZEN accepts 1,200 questions per minute from an agent, on all of its routes together', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.01' });
  const organisation = await world.organisation();
  const [agent, other] = [await organisation.agent({ grants: {} }), await organisation.agent({ grants: {} })];
  const ask = (by: TestAgent, path: string) =>
    by.post(path, {
      subject: { type: 'agent', id: by.id },
      action: { name: 'demo:read' },
      resource: { type: 'platform', id: 'demo' },
    });
  const paths = ['/v1/authzen/access', '/access/v1/evaluation', '/access/v1/evaluations'];
  const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => ask(agent, paths[i % 3]!)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  for (const path of paths) limited(await ask(agent, path), 'authzen');
  expect((await ask(other, paths[0]!)).status).toBe(200);
});

test('AuthZEN counts each question of a batch', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.05' });
  const organisation = await world.demoOrganisation();
  const agent = await organisation.agent();
  const ask = (many: number) =>
    agent.post('/access/v1/evaluations', {
      subject: { type: 'agent', id: agent.id },
      action: { name: 'demo:read' },
      evaluations: Array.from({ length: many }, () => ({ resource: { type: 'platform', id: 'demo' } })),
    });
  const first = await ask(50);
  expect([first.status, first.body.evaluations.length], first.text).toEqual([200, 50]);
  // What is told to be left is what is.
  const [, most, left] = /q=(\d+);.*r=(\d+);/.exec(
    `${first.headers.get('ratelimit-policy')} ${first.headers.get('ratelimit')}`,
  )!;
  expect(Number(most) - Number(left)).toBe(50);
  // A batch that does not fit counts only as its request; what is left can still be used.
  limited(await ask(12), 'authzen', 9);
  limited(await ask(10), 'authzen', 8);
  expect((await ask(8)).status).toBe(200);
  limited(await ask(1), 'authzen');
});
