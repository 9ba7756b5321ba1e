/** Two brokers on one PostgreSQL: a change at one applies to the very next decision of the other (MR-04, JW-27). */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { listGrants, moveAgent, putGrant } from '../../broker/store/agents.ts';
import { putGuardrails, putPolicy } from '../../broker/store/governed-versions.ts';
import { jsonPost, makeKeyPair, send, signToken, TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { childOf, TestChild } from '../world/child.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, READ, shared } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(`replicas on postgres${postgresNote}`, () => {
  let policy: string;
  let there: TestAgent;
  let second: BrokerProcess;
  let secondUrl: string;
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    // One public URL for both, because the bearers of children contain it.
    const port = await freePort();
    second = spawnBroker({
      ...world.environment,
      PORT: `${port}`,
      BASE_URL: world.running.baseUrl,
      AGENT_BROKER_DATA: newFolder(),
      AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
    });
    expect(await second.serve(), second.output().stderr).toBe(world.running.baseUrl);
    secondUrl = `http://localhost:${port}`;
    return () => second.signal('SIGKILL');
  });
  beforeEach(async () => {
    policy = await organisation.policy([{ effect: 'allow' }]);
  });
  const here = fresh(() => organisation.agent({ policy }));
  beforeEach(async () => {
    there = new TestAgent({ ...here, baseUrl: secondUrl });
    expect((await here.act(READ)).status).toBe(200);
    expect((await there.act(READ)).status).toBe(200);
  });
  const refused = async (reason: string) => {
    const answer = await withoutCalls(world, () => there.act(READ));
    expect([answer.status, answer.body.reason], answer.text).toEqual([403, reason]);
  };

  test('CH-11 a child issued at one replica is valid at the other immediately, and stops there with its parent', async () => {
    const child = await childOf(world, organisation, here);
    there = new TestChild(there, child);
    expect((await there.act(READ)).status).toBe(200);
    const move = (verb: string, agent: TestAgent) =>
      organisation.ask('POST', `/owner/agents/${agent.agentId}/${verb}`, {});
    await move('suspend', here);
    await refused('agent_suspended');
    await move('resume', here);
    expect((await there.act(READ)).status).toBe(200);
    await move('revoke', child);
    await refused('agent_revoked');
  });

  test('wrong signatures are counted over all replicas, including repeated tokens', async () => {
    const iat = Math.floor(Date.now() / 1000);
    const claims = { agent_id: here.agentId, owner_id: here.ownerId, iat, exp: iat + 60 };
    const headers = { authorization: `Bearer ${signToken(claims, makeKeyPair().privateKey)}` };
    const wrong = async (agent: TestAgent) =>
      expectEnvelope(await agent.get('/v1/agents/me', headers), 401, 'invalid_signature');
    for (const agent of [here, there, here, there]) await wrong(agent);
    expect((await there.act(READ)).status).toBe(200);
    await wrong(here);
    await refused('circuit_breaker_open');
  });

  test('MR-04 a suspension and a revocation apply at the other replica immediately', async () => {
    const place = { organisationId: organisation.id, id: here.id };
    for (let i = 0; i < 5; i++) {
      await moveAgent(
        world.db,
        place,
        { from: ['active'], to: 'suspended', cause: 'owner_manual', detail: null },
        Date.now(),
      );
      await refused('agent_suspended');
      await moveAgent(world.db, place, { from: ['suspended'], to: 'active', cause: null, detail: null }, Date.now());
      expect((await there.act(READ)).status).toBe(200);
    }
    await organisation.ask('POST', `/owner/agents/${here.id}/revoke`, {});
    await refused('agent_revoked');
  });

  test('MR-04 changes of a policy, a guardrail and a grant apply at the other replica immediately', async () => {
    const version = await there.get('/v1/agent/permissions');
    await putPolicy(world.db, { organisationId: organisation.id, id: policy, name: 'p', rules: '[]' }, Date.now());
    await refused('denied_by_policy');
    const rules = '[{"effect":"allow"}]';
    await putPolicy(world.db, { organisationId: organisation.id, id: policy, name: 'p', rules }, Date.now());
    expect((await there.act(READ)).status).toBe(200);
    await putGuardrails(world.db, organisation.id, '[{"name":"g","effect":"deny"}]', Date.now());
    await refused('denied_by_guardrail');
    await putGuardrails(world.db, organisation.id, '[]', Date.now());
    const [grant] = await listGrants(world.db, organisation.id, here.id);
    await putGrant(world.db, { ...grant!, scopes: '["demo:write"]' });
    await refused('scope_not_granted');
    const changed = await there.get('/v1/agent/permissions', { 'if-none-match': version.headers.get('etag')! });
    expect([changed.status, changed.body.data.platforms[0].scopes]).toEqual([200, ['demo:write']]);
  });

  test('JW-27 after a new key is bound at one replica the other rejects the old key and accepts the new one', async () => {
    const post = async (url: string, body: unknown) => await send(url, jsonPost(body));
    for (const [bindAt, callAt] of [
      [secondUrl, here],
      [here.baseUrl, there],
    ] as const) {
      const asked = await organisation.ask('POST', `/owner/agents/${here.agentId}/bootstrap-token`, { rotate: true });
      expect((await callAt.act(READ)).status, 'the old key goes on until another is bound').toBe(200);
      const keys = makeKeyPair();
      const body = { bootstrap_token: asked.body.bootstrap_token, public_key_pem: keys.publicPem };
      expect((await post(`${bindAt}/v1/agents/bind`, body)).status).toBe(200);
      expectEnvelope(await withoutCalls(world, () => callAt.act(READ)), 401, 'invalid_signature');
      for (const agent of [here, there]) agent.keys = keys;
      expect((await callAt.act(READ)).status).toBe(200);
    }
  });

  test('breakers and Idempotency-Keys are shared by the replicas', async () => {
    const call = { ...READ, method: 'PATCH', endpoint: '/items/1', scope: 'demo:write', data: { a: 1 } };
    const first = await here.act(call, { 'idempotency-key': 'one' });
    const again = await withoutCalls(world, () => there.act(call, { 'idempotency-key': 'one' }));
    expect([again.status, again.text]).toEqual([200, first.text]);
    for (let i = 0; i < 50; i++) await (i % 2 ? here : there).act({ ...READ, endpoint: '//x' });
    await refused('circuit_breaker_open');
  });

  test('a half-open breaker allows one trial over both replicas, and is closed on both after it', async () => {
    world.upstream.answer = (_request, response) => response.writeHead(503).end();
    for (let i = 0; i < 20; i++) await (i % 2 ? here : there).act(READ);
    for (const agent of [here, there])
      expect((await withoutCalls(world, () => agent.act(READ))).body.reason).toBe('circuit_breaker_open');
    // Moves its opening time into the past, because the clocks of both cannot be moved together.
    const halfOpen = () =>
      world.db
        .updateTable('breakers')
        .set({ open_until: Date.now() - 1 })
        .where('agent_id', '=', here.id)
        .execute();
    await halfOpen();
    world.upstream.seen.length = 0;
    await Promise.all(Array.from({ length: 12 }, (_, i) => (i % 2 ? here : there).act(READ)));
    expect(world.upstream.seen).toHaveLength(1);
    world.upstream.answer = undefined;
    await halfOpen();
    expect((await here.act(READ)).status).toBe(200);
    expect((await there.act(READ)).status).toBe(200);
    expect((await there.get('/v1/agents/me')).body).not.toHaveProperty('halt');
  });

  test('a receipt of one replica can be read and verified through the other', async () => {
    const id = (await here.act(READ)).body._meta.audit_id;
    const receipt = await there.get(`/v1/audit/${id}/receipt`, { accept: 'application/jose' });
    expect(receipt.text).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
  });
});
