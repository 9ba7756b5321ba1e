import http from 'node:http';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope } from '../world/evidence.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const MIB = 1024 * 1024;
const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
const LARGE = JSON.stringify(Array.from({ length: (9 * MIB) / 11 }, () => 'abcdefgh'));

describe.each(ONE_STORE)(`the budget of concurrent calls of one family on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let other: TestAgent;
  let baseUrl: string;
  /** Requests that the platform has received and not answered yet. */
  const waiting: http.ServerResponse[] = [];
  /** Paths that the platform received. */
  const seen: string[] = [];
  const answerAll = () => {
    for (const response of waiting.splice(0)) response.end('{}');
  };
  beforeAll(async () => {
    const server = http.createServer((request, response) => {
      seen.push(request.url ?? '');
      response.setHeader('content-type', 'application/json');
      if (request.url?.endsWith('/slow')) waiting.push(response);
      else response.end(request.url?.endsWith('/large') ? LARGE : '{}');
    });
    const port = await listenOnLoopback(server);
    const address = `127.0.0.1:${port}`;
    world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: address, AGENT_BROKER_LIMIT_FACTOR: '1' });
    organisation = await world.organisation();
    baseUrl = `http://${address}`;
    await organisation.platform({ manifest: { base_url: baseUrl } });
    const policy = await organisation.policy([
      { effect: 'require_approval', endpoints: ['/items/held'] },
      { effect: 'allow' },
    ]);
    const grants = { demo: { scopeList: ['demo:read'] } };
    agent = await organisation.agent({ policy, grants });
    other = await organisation.agent({ policy, grants });
  });
  afterEach(answerAll);

  const budget = () => world.running.services.budget.held;
  const slow = (who: TestAgent, times: number) =>
    Array.from({ length: times }, () => who.act({ ...READ, endpoint: '/items/slow' }));

  test('with 16 calls in flight the next answers 429 without reaching the platform, and another agent is not delayed', async () => {
    const many = slow(agent, 16);
    await expect.poll(() => waiting.length).toBe(16);
    const refused = await agent.act(READ);
    expectEnvelope(refused, 429, 'too_many_calls');
    expect(refused.headers.get('retry-after')).toBe('1');
    const { row } = await evidenceOf(world, agent, auditIdOf(refused));
    expect(row).toMatchObject({ result: 'blocked', reason: 'too_many_calls', upstream_status: null });
    expect((await other.act(READ)).status).toBe(200);
    answerAll();
    expect((await Promise.all(many)).map(({ status }) => status)).toEqual(Array(16).fill(200));
    expect((await agent.act(READ)).status).toBe(200);
    await expect.poll(budget).toEqual({ calls: 0, bytes: 0 });
  });

  test('the body of a request counts until its call is answered', async () => {
    const by = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { demo: { scopeList: ['demo:write'] } },
    });
    const sent = by.act({
      ...{ platform: 'demo', endpoint: '/items?at=/slow', method: 'POST', scope: 'demo:write' },
      data: { text: 'x'.repeat(MIB / 2) },
    });
    await expect.poll(() => waiting.length).toBe(1);
    expect(budget().calls).toBe(1);
    // As parsed, and as sent.
    expect(budget().bytes).toBeGreaterThan(MIB);
    expect(budget().bytes).toBeLessThan(MIB + 2_000);
    answerAll();
    expect((await sent).status).toBe(200);
    await expect.poll(budget).toEqual({ calls: 0, bytes: 0 });
  });

  describe('a body of many small values', () => {
    const small = (count: number) => JSON.stringify({ list: Array.from({ length: count }, () => ({})) });
    const policyOf = () => organisation.policy([{ effect: 'allow' }]);
    const writer = async () =>
      await organisation.agent({ policy: await policyOf(), grants: { demo: { scopeList: ['demo:write'] } } });
    const entries = {
      '/v1/actions': (by: TestAgent, data: string) =>
        by.act(`{"platform":"demo","endpoint":"/items?at=/slow","method":"POST","scope":"demo:write","data":${data}}`),
      '/proxy': (by: TestAgent, body: string) =>
        by.request('POST', '/proxy/demo-main/items?at=/slow', {
          body,
          headers: { 'content-type': 'application/json' },
        }),
    };

    test.each(
      Object.entries(entries).flatMap(([name, send]) => [5_000, 50_000].map((count) => [name, count, send] as const)),
    )('counts as the memory that it takes, until its call is answered: %s, %d objects', async (_name, count, send) => {
      const sent = send(await writer(), small(count));
      await expect.poll(() => waiting.length).toBe(1);
      expect(budget().bytes).toBeGreaterThan(64 * count);
      expect(budget().bytes).toBeLessThan(75 * count);
      answerAll();
      expect((await sent).status).toBe(200);
      await expect.poll(budget).toEqual({ calls: 0, bytes: 0 });
    });

    test.each([
      ['/v1/actions', entries['/v1/actions'], 400],
      // The bytes as sent take the room before the body is parsed.
      ['/proxy', entries['/proxy'], 429],
    ] as const)(
      'is refused and recorded immediately when there is no memory for it, and delays no other body: %s',
      async (_name, send, malformed) => {
        const by = await writer();
        const other = world.running.services.budget.lease({ family: by.id, organisation: organisation.id });
        other.count(32 * MIB);
        const began = performance.now();
        const answers = await Promise.all(
          [small(50_000), small(50_000), `${small(50_000)},`].map((one) => send(by, one)),
        );
        const ms = performance.now() - began;
        other.release();
        const statuses = answers.map(({ status }) => status);
        expect([statuses, ms < 5_000], `${ms} ms`).toEqual([[429, 429, malformed], true]);
        for (const refused of answers.slice(0, 2)) {
          expect(refused.text).toContain('too_many_calls');
          expect(refused.headers.get('retry-after')).toBe('1');
          const { row } = await evidenceOf(world, by, auditIdOf(refused));
          expect(row).toMatchObject({ result: 'blocked', reason: 'too_many_calls', upstream_status: null });
        }
        await expect.poll(budget).toEqual({ calls: 0, bytes: 0 });
      },
    );
  });

  test('agents of one organisation that use all calls of the process do not stop those of another one', async () => {
    const elsewhere = await world.organisation();
    await elsewhere.platform({ manifest: { base_url: baseUrl } });
    const policy = await elsewhere.policy([{ effect: 'allow' }]);
    const stranger = await elsewhere.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } });
    const { budget: calls } = world.running.services;
    const leases = Array.from({ length: 256 }, (_, i) =>
      calls.lease({ family: `family ${i % 16}`, organisation: organisation.id }),
    );
    expect(leases.filter((lease) => lease.begin())).toHaveLength(256);
    expectEnvelope(await agent.act(READ), 429, 'too_many_calls');
    expect((await stranger.act(READ)).status).toBe(200);
    for (const lease of leases) lease.release();
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('a held call takes no slot', async () => {
    const held = await Promise.all(Array.from({ length: 20 }, () => agent.act({ ...READ, endpoint: '/items/held' })));
    expect(held.map(({ status }) => status)).toEqual(Array(20).fill(202));
    expect(budget()).toEqual({ calls: 0, bytes: 0 });
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('an approved call waits for a slot, and is decided again when it gets one', async () => {
    const held = await Promise.all([agent, other].map((who) => who.act({ ...READ, endpoint: '/items/held' })));
    const [suspended, allowed] = held.map(({ body }) => body.approval_id as string);
    const many = [...slow(agent, 16), ...slow(other, 16)];
    await expect.poll(() => waiting.length).toBe(32);
    const approving = Promise.all([organisation.approve(suspended), organisation.approve(allowed)]);
    await expect.poll(async () => (await other.get(`/v1/approvals/${allowed}`)).body.status).toBe('approved');
    expect((await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {})).status).toBe(200);
    const before = seen.length;
    answerAll();
    await Promise.all([...many, approving]);
    expect((await other.get(`/v1/approvals/${allowed}?wait=20`)).body.result).toEqual({ status: 200, data: {} });
    expect((await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {})).status).toBe(200);
    const { body } = await agent.get(`/v1/approvals/${suspended}?wait=20`);
    expect(body.execution_error).toMatch(/^agent_suspended/);
    expect(seen.slice(before).filter((url) => url.endsWith('/held'))).toHaveLength(1);
  });

  test('unread answers count against the budget of the next calls until the client disconnects', async () => {
    const unread = await Promise.all(
      Array.from({ length: 5 }, () => leaveUnread(world.running.baseUrl, agent, { ...READ, endpoint: '/items/large' })),
    );
    await expect.poll(() => budget().bytes, { timeout: 20_000 }).toBeGreaterThan(32 * MIB);
    // At most one answer more than the budget.
    expect(budget().bytes).toBeLessThan(43 * MIB);
    expectEnvelope(await agent.act(READ), 429, 'too_many_calls');
    expect((await other.act(READ)).status).toBe(200);
    for (const request of unread) request.destroy();
    await expect.poll(budget, { timeout: 20_000 }).toEqual({ calls: 0, bytes: 0 });
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('a large answer arrives unchanged', async () => {
    const answer = await agent.act({ ...READ, endpoint: '/items/large' });
    expect([answer.status, JSON.stringify(answer.body.data) === LARGE]).toEqual([200, true]);
  });
});

/** Sends a call, and never reads the answer. */
async function leaveUnread(baseUrl: string, agent: TestAgent, action: unknown): Promise<http.ClientRequest> {
  const request = http.request(`${baseUrl}/v1/actions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${agent.token()}`, 'content-type': 'application/json' },
    agent: false,
  });
  request.on('error', () => {});
  request.on('response', (response) => {
    response.on('error', () => {});
    response.pause();
  });
  request.end(JSON.stringify(action));
  return request;
}
