/** Agents that wait for a decision: answered immediately, without load on the store in between. */
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { sealRequest } from '../../broker/approvals/sealed.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { MAX_PIPELINED } from '../../broker/process/pipelined-requests.ts';
import { putApproval } from '../../broker/store/approvals.ts';
import { expectStatus, jsonPost, makeKeyPair, send, type TestAgent } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { givenWorld, type Organisation, shared, WRITE } from '../world/world.ts';

/** Agents that wait concurrently in one test. */
const WAITERS = sized(1_000, 2_000);
/** For the broker and its clients, which share one process. */
const MAX_MB = WAITERS / 8;

describe.each(ONE_STORE)(`waiting for a decision on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  const decide = (id: string, verb: 'approve' | 'deny') =>
    organisation.ask('POST', `/owner/approvals/${id}/${verb}`, {});
  const seconds = async <T>(work: Promise<T>): Promise<[number, T]> => {
    const began = performance.now();
    const value = await work;
    return [(performance.now() - began) / 1000, value];
  };
  /** Starts counting the statements that the broker sends. */
  const countStatements = () => {
    const { store: opened } = world.running.broker;
    const spies = [
      vi.spyOn(opened, 'read'),
      vi.spyOn(opened, 'exclusively'),
      vi.spyOn(opened.db.getExecutor(), 'executeQuery'),
      vi.spyOn(opened.db, 'transaction'),
    ];
    return {
      count: () => spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0),
      end: () => {
        for (const spy of spies) spy.mockRestore();
      },
    };
  };
  const waitersFor = (id: string) => world.running.services.changes.waiting(id);
  const isWaiting = (id: string, many = 1) =>
    vi.waitUntil(() => waitersFor(id) >= many, { timeout: 10_000, interval: 2 });

  test('an approval answers the waiting agent with the platform’s answer, a denial with the denial', async () => {
    for (const [verb, expected] of [
      ['approve', { status: 'approved', result: { status: 200, data: expect.anything() } }],
      ['deny', { status: 'denied' }],
    ] as const) {
      const id = await agent.hold(WRITE);
      const waiting = seconds(agent.get(`/v1/approvals/${id}?wait=20`));
      await isWaiting(id);
      await decide(id, verb);
      const [took, { status, body }] = await waiting;
      expect([status, body]).toEqual([200, expect.objectContaining(expected)]);
      expect(took).toBeLessThan(scaledTimeout(5));
    }
  });

  test('the waiting agent gets its answer less than 100 ms after the platform’s own time', async () => {
    const platformMs = 50;
    world.upstream.answer = (_request, response) =>
      setTimeout(() => response.setHeader('content-type', 'application/json').end('{}'), platformMs);
    const above: number[] = [];
    for (let round = 0; round < 8; round++) {
      const id = await agent.hold(WRITE);
      const waiting = agent.get(`/v1/approvals/${id}?wait=20`);
      await isWaiting(id);
      const began = performance.now();
      const decided = decide(id, 'approve');
      expect((await waiting).body.result.status).toBe(200);
      above.push(performance.now() - began - platformMs);
      await decided;
    }
    // Not the median: the speed on a busy machine says nothing about the broker.
    expect(above.sort((a, b) => a - b)[2]).toBeLessThan(scaledTimeout(100));
  });

  test('an agent whose key was replaced during the wait does not get the answer', async () => {
    const robbed = await organisation.agent({ name: 'robbed', keys: makeKeyPair() });
    const id = await robbed.hold(WRITE);
    const waiting = robbed.get(`/v1/approvals/${id}?wait=20`);
    await isWaiting(id);
    const { publicPem: public_key_pem } = makeKeyPair();
    const path = `/owner/agents/${robbed.agentId}/bootstrap-token`;
    const { bootstrap_token } = (await organisation.ask('POST', path, { rotate: true })).body;
    await expectStatus(200, send(`${robbed.baseUrl}/v1/agents/bind`, jsonPost({ bootstrap_token, public_key_pem })));
    await decide(id, 'approve');
    expectEnvelope(await waiting, 401, 'invalid_token');
  });

  test('without wait, and for a settled call, the answer comes immediately', async () => {
    const id = await agent.hold(WRITE);
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    await decide(id, 'deny');
    const [took, { body }] = await seconds(agent.get(`/v1/approvals/${id}?wait=50`));
    expect(body.status).toBe('denied');
    expect(took).toBeLessThan(scaledTimeout(5));
    for (const wrong of ['-1', '1.5', 'x', '', '9999999'])
      expectEnvelope(await agent.get(`/v1/approvals/${id}?wait=${wrong}`), 400, 'invalid_request');
    const twice = await agent.get(`/v1/approvals/${id}?wait=0&wait=50`);
    expectEnvelope(twice, 400, 'invalid_request');
    expect(twice.body.detail).toBe('wait: duplicate query parameter; send it once.');
    expect((await agent.get(`/v1/approvals/${id}?wait=9999`)).status).toBe(200);
    expectEnvelope(await agent.get(`/v1/approvals/${uuidv4()}?wait=50`), 404, 'not_found');
  });

  test('without a decision the answer after the wait is pending', async () => {
    const id = await agent.hold(WRITE);
    const [took, { body }] = await seconds(agent.get(`/v1/approvals/${id}?wait=1`));
    expect(body.status).toBe('pending');
    expect(took).toBeGreaterThan(0.9);
    expect(waitersFor(id)).toBe(0);
  });

  test('it waits for the result of the call, not only for the decision', async () => {
    let finish = () => {};
    const asked = new Promise<void>((resolve) => {
      world.upstream.answer = (_request, response) => {
        finish = () => response.setHeader('content-type', 'application/json').end('{"late":true}');
        resolve();
      };
    });
    const id = await agent.hold(WRITE);
    const waiting = agent.get(`/v1/approvals/${id}?wait=20`);
    await isWaiting(id);
    const decided = decide(id, 'approve');
    await asked;
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'approved', executed_at: null });
    finish();
    expect((await waiting).body.result.data).toEqual({ late: true });
    await decided;
  });

  test('an approval that expires during the wait is answered then', async () => {
    const { broker } = world.running;
    const id = uuidv4();
    const now = broker.clock();
    await putApproval(broker.store.db, approvalOf(organisation, agent, id, now, now + 700));
    const [took, { body }] = await seconds(agent.get(`/v1/approvals/${id}?wait=20`));
    expect(body.status).toBe('expired');
    expect(took).toBeLessThan(8);
  });

  test('a wait ends when the agent disconnects', async () => {
    const id = await agent.hold(WRITE);
    const asking = httpRequest(`${agent.baseUrl}/v1/approvals/${id}?wait=50`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    asking.on('error', () => {});
    asking.end();
    await isWaiting(id);
    asking.destroy();
    await vi.waitUntil(() => waitersFor(id) === 0, { timeout: 5_000 });
  });

  test('one connection may have as many concurrent waits as it may pipeline requests, without a warning in the log', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    const id = await agent.hold(WRITE);
    const socket = connect(Number(new URL(agent.baseUrl).port), 'localhost');
    let answers = '';
    socket.on('data', (bytes) => {
      answers += bytes;
    });
    for (let i = 0; i < MAX_PIPELINED; i++)
      socket.write(
        `GET /v1/approvals/${id}?wait=20 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${agent.token()}\r\n\r\n`,
      );
    await isWaiting(id, MAX_PIPELINED);
    await decide(id, 'deny');
    await vi.waitUntil(() => answers.split('"status":"denied"').length === MAX_PIPELINED + 1, { timeout: 10_000 });
    socket.destroy();
    process.off('warning', note);
    expect(warnings.map(String)).toEqual([]);
  });

  test('a stopping broker answers waiting agents with the current state', async () => {
    const id = await agent.hold(WRITE);
    const waiting = seconds(agent.get(`/v1/approvals/${id}?wait=50`));
    await isWaiting(id);
    const [stopTook] = await seconds(world.restart());
    const [, { status, body }] = await waiting;
    expect([status, body.status]).toEqual([200, 'pending']);
    expect(stopTook).toBeLessThan(8);
    expect((await decide(id, 'approve')).body.status).toBe('approved');
  });

  test(`${WAITERS} waiting agents cause no statement until there is news, and use less than ${MAX_MB} MB`, {
    timeout: 360_000,
  }, async () => {
    const { broker } = world.running;
    const agents = await Promise.all(Array.from({ length: 20 }, () => organisation.agent()));
    const ids = new Map<string, TestAgent>();
    const now = broker.clock();
    for (const one of agents)
      for (let i = 0; i < WAITERS / agents.length; i++) {
        const id = uuidv4();
        ids.set(id, one);
        await putApproval(broker.store.db, approvalOf(organisation, one, id, now, now + DAY_MS));
      }
    // The path of notices is set up before counting.
    const first = await agent.hold(WRITE);
    const early = agent.get(`/v1/approvals/${first}?wait=20`);
    await isWaiting(first);
    await decide(first, 'deny');
    await early;
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    const waiting: Promise<unknown>[] = [];
    for (const [id, one] of ids) {
      waiting.push(one.get(`/v1/approvals/${id}?wait=50`));
      if (waiting.length % 100 === 0) await isWaiting(id);
    }
    const statements = countStatements();
    const inThreeSeconds = async () => {
      const already = statements.count();
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      return statements.count() - already;
    };
    // If each waiting agent polled once in its 50 s, there would be 60 more for a thousand. Ten statements a second run anyway: for leases, the
    // outbox of notices, the receipt log and recovery; the jobs of each minute may fall into one of the two windows.
    const windows = [await inThreeSeconds()];
    if (windows[0]! >= 60) windows.push(await inThreeSeconds());
    expect(Math.min(...windows), `statements in 3 s: ${windows}`).toBeLessThan(60);
    const counted = statements.count();
    await agent.get(`/v1/approvals/${first}`);
    expect(statements.count(), 'the twin: a request is counted').toBeGreaterThanOrEqual(counted + 2);
    statements.end();
    expect((process.memoryUsage().rss - before) / 1e6, 'MB for broker and clients').toBeLessThan(MAX_MB);
    const [id, one] = [...ids][777]!;
    const [took] = await seconds(Promise.all([waiting[777], decide(id, 'deny')]));
    expect(took).toBeLessThan(scaledTimeout(5));
    expect((await one.get(`/v1/approvals/${id}`)).body.status).toBe('denied');
    world.running.services.changes.release();
    await Promise.all(waiting);
    await world.restart();
  });

  const approvalOf = (of: Organisation, by: TestAgent, id: string, createdAt: number, expiresAt: number) => ({
    organisation_id: of.id,
    id,
    agent_id: by.id,
    audit_id: uuidv4(),
    status: 'pending' as const,
    platform_id: 'demo',
    scope: 'demo:write',
    method: 'POST',
    path: '/items',
    request_hash: '0'.repeat(64),
    action: sealRequest(world.running.broker, { organisation_id: of.id, id }, {}),
    sentence: null,
    created_at: createdAt,
    expires_at: expiresAt,
  });
});
