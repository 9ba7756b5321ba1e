import { beforeAll, describe, expect, test } from 'vitest';
import { countStrikes } from '../../broker/auth/strikes.ts';
import type { FactsRow } from '../../broker/store/facts-columns.ts';
import type { BreakerTable } from '../../broker/store/tables/agents.ts';
import { type Answer, expectStatus, jsonPost, makeKeyPair, send, signToken, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, withoutCalls } from '../world/evidence.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, READ, shared, startWorld } from '../world/world.ts';

const MALFORMED = { ...READ, endpoint: '//x' };
const HERE = '127.0.0.1';
const ELSEWHERE = '127.0.0.2';

describe.each(STORES)(`circuit breakers on %s${postgresNote}`, (store) => {
  const stranger = makeKeyPair();
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(() => organisation.platform({ id: 'other' }));

  const newAgent = () => organisation.agent({ grants: { demo: {}, other: {} } });
  const fail = () => {
    world.upstream.answer = (_request, response) => response.writeHead(503).end();
  };

  /** Makes `times` calls with a wrong signature, each with a new token unless `more` says otherwise. */
  async function strike(agent: TestAgent, times: number, more: Record<string, unknown> = {}, from = HERE) {
    for (let i = 0; i < times; i++) {
      const iat = Math.floor(agent.clock() / 1000);
      const claims = { agent_id: agent.agentId, owner_id: agent.ownerId, iat, exp: iat + 60, jti: `${i}`, ...more };
      const answer = await agent.get(
        '/v1/agents/me',
        { authorization: `Bearer ${signToken(claims, stranger.privateKey)}` },
        from,
      );
      expect([answer.status, answer.body.error]).toEqual([401, 'invalid_signature']);
    }
  }

  /**
   * Writes this many recent strikes directly, as the same number of failures would. Tests of opening a breaker make all failures instead.
   */
  async function struck(agent: TestAgent, cause: BreakerTable['cause'], key: string, strikes: number) {
    await world.db
      .insertInto('breakers')
      .values({
        ...{ organisation_id: organisation.id, agent_id: agent.id, cause, key, strikes, window_start: agent.clock() },
        ...{ opened_at: null, open_until: null, trial_at: null },
      })
      .execute();
  }
  /** Makes enough failures of a platform to open its breaker. */
  async function failing(agent: TestAgent, platform = 'demo') {
    await struck(agent, 'breaker_upstream_failure', platform, 19);
    fail();
    expect((await agent.act({ ...READ, platform })).body._meta.upstream_status).toBe(503);
  }

  /** Expects a refusal by the breaker of one platform: the agent is not halted, and the answer has a retry time. */
  async function refusedThere(
    answer: Answer,
    agent: TestAgent,
    platform: string,
    seconds: [least: number, most: number],
  ) {
    const { error, reason, detail } = answer.body;
    expect([answer.status, error, reason], answer.text).toEqual([403, 'Permission denied', 'circuit_breaker_open']);
    expect(answer.body).not.toHaveProperty('halt');
    expect(answer.body.platform).toBe(platform);
    expect(detail).toContain(platform);
    const retryAfter = Number(answer.headers.get('retry-after'));
    expect(retryAfter).toBeGreaterThanOrEqual(seconds[0]);
    expect(retryAfter).toBeLessThanOrEqual(seconds[1]);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'denied', reason: 'circuit_breaker_open' });
  }

  /** Expects a refusal because a breaker halted the agent, with the complete halt and a retry time. */
  async function open(answer: Answer, agent: TestAgent, cause: string, seconds: [least: number, most: number]) {
    expect([answer.status, answer.body.error, answer.body.reason], answer.text).toEqual([
      403,
      'agent_halted',
      'circuit_breaker_open',
    ]);
    const { halt } = answer.body;
    expect(halt).toEqual({
      state: 'breaker_open',
      since: expect.stringMatching(/^\d{4}-.*Z$/),
      cause,
      detail: expect.any(String),
      recoverable_by: 'time',
      retry_after_seconds: expect.any(Number),
      instructions: expect.any(String),
    });
    expect(halt.retry_after_seconds).toBeGreaterThanOrEqual(seconds[0]);
    expect(halt.retry_after_seconds).toBeLessThanOrEqual(seconds[1]);
    expect(answer.headers.get('retry-after')).toBe(String(halt.retry_after_seconds));
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'denied', reason: 'circuit_breaker_open' });
  }

  type Upstream = typeof world.upstream.answer;

  const answering =
    (status: number): Upstream =>
    (_request, response) =>
      response.writeHead(status).end();

  test('DOS-01 five wrong signatures open the breaker for their source address only', async () => {
    const agent = await newAgent();
    await strike(agent, 4);
    expect((await agent.act(READ, {}, HERE)).status).toBe(200);
    await strike(agent, 1, { jti: 'fifth' });
    const answer = await withoutCalls(world, () => agent.act(READ, {}, HERE));
    await open(answer, agent, 'breaker_auth_failure', [55, 60]);
    expect((await agent.act(READ, {}, ELSEWHERE)).status).toBe(200);
    expect((await agent.get('/v1/agents/me', {}, HERE)).body.halt).toMatchObject({ state: 'breaker_open' });
    expect((await agent.get('/v1/agents/me', {}, ELSEWHERE)).body).not.toHaveProperty('halt');
    const permissions = await agent.get('/v1/agent/permissions', {}, HERE);
    expect([permissions.status, permissions.body.reason]).toEqual([403, 'circuit_breaker_open']);
    expect((await agent.get('/v1/agent/permissions', {}, ELSEWHERE)).status).toBe(200);
    // After the open time one trial call passes, and closes the breaker.
    world.clock.skewMs = 61_000;
    expect((await agent.act(READ, {}, HERE)).status).toBe(200);
    expect((await agent.get('/v1/agents/me', {}, HERE)).body).not.toHaveProperty('halt');
  });

  test('while the breaker of their address is open, wrong signatures write nothing more', async () => {
    const agent = await newAgent();
    const row = () =>
      world.db.selectFrom('breakers').selectAll().where('agent_id', '=', agent.id).executeTakeFirstOrThrow();
    await strike(agent, 5);
    const opened = await row();
    await strike(agent, 5);
    expect(await row()).toEqual(opened);
    world.clock.skewMs = 61_000;
    await strike(agent, 1);
    expect(Number((await row()).open_until)).toBeGreaterThan(Number(opened.open_until));
  });

  test('strikes older than a minute do not count', async () => {
    const agent = await newAgent();
    await strike(agent, 4);
    world.clock.skewMs = 61_000;
    await strike(agent, 4);
    expect((await agent.act(READ, {}, HERE)).status).toBe(200);
  });

  test('50 malformed calls in a minute open a breaker; the next trial closes it, or opens it again', async () => {
    const agent = await newAgent();
    await struck(agent, 'breaker_api_error', '', 43);
    for (let i = 0; i < 6; i++)
      expect(await agent.act(i % 2 ? MALFORMED : '{"platform":1}')).toMatchObject({
        status: 400,
        body: { error: i % 2 ? 'invalid_endpoint' : 'invalid_request' },
      });
    expect((await agent.act(READ)).status).toBe(200);
    expect(await agent.act(MALFORMED)).toMatchObject({ status: 400, body: { error: 'invalid_endpoint' } });
    await open(await withoutCalls(world, () => agent.act(READ)), agent, 'breaker_api_error', [55, 60]);
    expect((await agent.get('/v1/agents/me')).body.halt.cause).toBe('breaker_api_error');
    world.clock.skewMs = 61_000;
    expect(await agent.act(MALFORMED)).toMatchObject({ status: 400, body: { error: 'invalid_endpoint' } });
    await open(await agent.act(READ), agent, 'breaker_api_error', [55, 60]);
    world.clock.skewMs = 122_000;
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.get('/v1/agents/me')).body).not.toHaveProperty('halt');
  });

  test('20 failures of one platform stop the calls to it, and to no other platform', async () => {
    const agent = await newAgent();
    fail();
    for (let i = 0; i < 20; i++) expect((await agent.act(READ)).body._meta.upstream_status).toBe(503);
    await refusedThere(await withoutCalls(world, () => agent.act(READ)), agent, 'demo', [55, 60]);
    world.upstream.answer = undefined;
    expect((await agent.act({ ...READ, platform: 'other' })).status).toBe(200);
    // The agent as a whole is not halted: its permissions are those of the other platforms.
    expect((await agent.get('/v1/agents/me')).body).not.toHaveProperty('halt');
    const permissions = await agent.get('/v1/agent/permissions');
    expect(permissions.body.data.platforms.map((p: { platformId: string }) => p.platformId)).toEqual(['other']);
  });

  test('of concurrent calls at a half-open breaker one is the trial; when it fails the breaker opens again', async () => {
    const agent = await newAgent();
    await failing(agent);
    world.clock.skewMs = 61_000;
    world.upstream.seen.length = 0;
    const answers = await Promise.all(Array.from({ length: 8 }, () => agent.act(READ)));
    expect(world.upstream.seen).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const refused = answers.filter(({ status }) => status === 403);
    expect(refused).toHaveLength(7);
    for (const { body } of refused) expect(body.reason).toBe('circuit_breaker_open');
    await refusedThere(await agent.act(READ), agent, 'demo', [1, 60]);
    world.upstream.answer = undefined;
    world.clock.skewMs = 122_000;
    const after = await Promise.all(Array.from({ length: 4 }, () => agent.act(READ)));
    expect(after.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(1);
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('a trial without a verdict is released, so that the next call can be the trial', async () => {
    const agent = await newAgent();
    await failing(agent);
    world.clock.skewMs = 61_000;
    world.upstream.answer = answering(401);
    expect(await agent.act(READ)).toMatchObject({ status: 409, body: { error: 'platform_reauth_needed' } });
    world.upstream.answer = undefined;
    await expectStatus(200, agent.act(READ));
  });

  // The remaining tests do not depend on the store's SQL: one store is enough.
  if (!ONE_STORE.includes(store)) return;

  test('every use of a token with a wrong signature counts', async () => {
    const agent = await newAgent();
    const iat = Math.floor(Date.now() / 1000);
    await strike(agent, 4, { jti: 'the same', iat, exp: iat + 60 });
    expect((await agent.act(READ, {}, HERE)).status).toBe(200);
    await strike(agent, 1, { jti: 'the same', iat, exp: iat + 60 });
    await open(await agent.act(READ, {}, HERE), agent, 'breaker_auth_failure', [55, 60]);
  });

  test('DOS-01 only tokens that are valid except for their signature count', async () => {
    const agent = await newAgent();
    await strike(agent, 6, { owner_id: crypto.randomUUID() });
    await strike(agent, 6, { iat: 1, exp: 61 });
    await strike(agent, 6, { exp: Math.floor(Date.now() / 1000) + 3600 });
    expect((await agent.act(READ, {}, HERE)).status).toBe(200);
  });

  test('a halt by a breaker is answered to every call, also for platforms and connections without a grant', async () => {
    const agent = await newAgent();
    await strike(agent, 5);
    const asked = [
      { ...READ, platform: 'nowhere' },
      { ...READ, connection_id: crypto.randomUUID() },
    ];
    for (const call of asked) await open(await agent.act(call, {}, HERE), agent, 'breaker_auth_failure', [50, 60]);
    for (const call of asked)
      expect((await agent.act(call, {}, ELSEWHERE)).body).toMatchObject({
        error: 'Permission denied',
        reason: 'no_permission_record',
      });
  });

  test.each([
    [499, 200],
    [500, 403],
    [599, 403],
  ])('after 19 failures and an answer with status %i the next call is answered %i', async (status, expected) => {
    const agent = await newAgent();
    await struck(agent, 'breaker_upstream_failure', 'demo', 19);
    world.upstream.answer = (_request, response) => response.writeHead(status).end();
    expect((await agent.act(READ)).body._meta.upstream_status).toBe(status);
    world.upstream.answer = undefined;
    expect((await agent.act(READ)).status).toBe(expected);
  });

  test('open breakers on all platforms that the agent has a grant for halt it on every route until the first one ends', async () => {
    const agent = await newAgent();
    await failing(agent);
    world.clock.skewMs = 20_000;
    await failing(agent, 'other');
    // The first breaker ends in 40 seconds.
    for (const platform of ['demo', 'other'])
      await open(await agent.act({ ...READ, platform }), agent, 'breaker_upstream_failure', [35, 40]);
    const me = await agent.get('/v1/agents/me');
    expect(me.body.halt).toMatchObject({ state: 'breaker_open', cause: 'breaker_upstream_failure' });
    for (const answer of [await agent.get('/v1/agent/permissions'), await askForAccess(agent)]) {
      const { error, reason, halt } = answer.body;
      expect([answer.status, error, reason]).toEqual([403, 'agent_halted', 'circuit_breaker_open']);
      expect(halt).toEqual({ ...me.body.halt, retry_after_seconds: expect.any(Number) });
    }
    world.upstream.answer = undefined;
    world.clock.skewMs = 61_000;
    expect((await agent.get('/v1/agents/me')).body).not.toHaveProperty('halt');
    await refusedThere(await agent.act({ ...READ, platform: 'other' }), agent, 'other', [1, 20]);
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('an agent with one platform is halted while the trial call of its breaker is in flight', async () => {
    const agent = await organisation.agent({ grants: { demo: {} } });
    await failing(agent);
    world.clock.skewMs = 61_000;
    const answers = await Promise.all(Array.from({ length: 6 }, () => agent.act(READ)));
    const refused = answers.filter(({ status }) => status === 403);
    expect(refused).toHaveLength(5);
    for (const answer of refused) await open(answer, agent, 'breaker_upstream_failure', [1, 60]);
  });

  const askForAccess = (agent: TestAgent) =>
    agent.post('/v1/access-request', { platform: 'demo', scope: 'demo:other' });

  test('queries by anyone but the agent count an authentication breaker open for any address', async () => {
    await world.db
      .updateTable('organisations')
      .set({ publish_identity_documents: 1 })
      .where('id', '=', organisation.id)
      .execute();
    const agent = await newAgent();
    const { host } = new URL(world.running.baseUrl);
    const trqp = (ask: (path: string, body: unknown) => Promise<Answer>) =>
      ask('/v1/trqp/authorization', {
        entity_id: agent.agentId,
        authority_id: `did:web:${encodeURIComponent(host)}`,
        action: 'demo:read',
        resource: 'demo',
      });
    const authzen = (ask: (path: string, body: unknown) => Promise<Answer>) =>
      ask('/v1/authzen/access', {
        subject: { type: 'agent', id: agent.agentId },
        action: { name: 'demo:read' },
        resource: { type: 'platform', id: 'demo' },
      });
    const asOwner = (path: string, body: unknown) => organisation.ask('POST', path, body);
    const asStranger = (path: string, body: unknown) => send(world.running.baseUrl + path, jsonPost(body));
    const asAgent = (from: string) => (path: string, body: unknown) => agent.post(path, body, {}, from);
    const child = await organisation.agent({
      agent: { agent_type: 'child', parent_id: agent.id, expires_at: Date.now() + 3_600_000 },
    });
    const ofChild = () =>
      organisation.ask('POST', '/v1/authzen/access', {
        subject: { type: 'agent', id: child.agentId },
        action: { name: 'demo:read' },
        resource: { type: 'platform', id: 'demo' },
      });
    expect((await trqp(asStranger)).body.authorized).toBe(true);
    expect((await authzen(asOwner)).body.decision).toBe(true);
    expect((await ofChild()).body.decision).toBe(true);
    await strike(agent, 5, {}, ELSEWHERE);
    for (const ask of [asStranger, asOwner, asAgent(ELSEWHERE)])
      expect((await trqp(ask)).body).toMatchObject({ authorized: false, message: 'circuit_breaker_open' });
    for (const ask of [asOwner, asAgent(ELSEWHERE)])
      expect((await authzen(ask)).body).toMatchObject({ decision: false, reason: 'circuit_breaker_open' });
    expect((await ofChild()).body).toMatchObject({ decision: false, reason: 'circuit_breaker_open' });
    // The agent itself gets the result for its own current address.
    expect((await trqp(asAgent(HERE))).body.authorized).toBe(true);
    expect((await authzen(asAgent(HERE))).body.decision).toBe(true);
    world.clock.skewMs = 61_000;
    for (const ask of [asStranger, asOwner]) expect((await trqp(ask)).body.authorized).toBe(true);
    expect((await authzen(asOwner)).body.decision).toBe(true);
  });

  test.each<[string, number, Upstream]>([
    ['answers 503', 200, answering(503)],
    ['takes no credential', 409, answering(401)],
    ['breaks off', 502, (_request, response) => response.destroy()],
  ])(
    'a correctly signed call closes the breaker of its address, even when the platform %s',
    async (_what, status, ill) => {
      const agent = await newAgent();
      await strike(agent, 5);
      world.clock.skewMs = 61_000;
      world.upstream.answer = ill;
      expect((await agent.act(READ, {}, HERE)).status).toBe(status);
      world.upstream.answer = undefined;
      await expectStatus(200, agent.act(READ, {}, HERE));
      expect((await agent.get('/v1/agent/permissions', {}, HERE)).status).toBe(200);
    },
  );

  test('a well-formed call closes the breaker of malformed calls, even when an owner must approve it', async () => {
    const agent = await organisation.agent({ grants: { demo: { require_approval: 1 } } });
    await struck(agent, 'breaker_api_error', '', 49);
    expect(await agent.act(MALFORMED)).toMatchObject({ status: 400, body: { error: 'invalid_endpoint' } });
    world.clock.skewMs = 61_000;
    expect((await agent.act(READ)).status).toBe(202);
    // A half-open breaker would open again after one malformed call.
    expect(await agent.act(MALFORMED)).toMatchObject({ status: 400, body: { error: 'invalid_endpoint' } });
    expect((await agent.act(READ)).status).toBe(202);
  });

  test('4xx answers do not count as failures of the platform', async () => {
    const agent = await newAgent();
    await struck(agent, 'breaker_upstream_failure', 'demo', 19);
    world.upstream.answer = (_request, response) => response.writeHead(404).end();
    for (let i = 0; i < 3; i++) expect((await agent.act(READ)).body._meta.upstream_status).toBe(404);
  });
});

test('an opening is recorded once, also when wrong signatures were sent before it', async () => {
  const world = await startWorld('sqlite');
  const { broker } = world.running;
  const organisation = await world.organisation();
  const agent = await organisation.agent({ grants: {} });
  const recorded: number[] = [];
  let now = broker.clock();
  const countStrike = countStrikes({ store: broker.store, clock: () => now }, async () => {
    recorded.push(now);
  });
  // The facts of each request were read before the breaker opened.
  const before = { organisation_id: organisation.id, id: agent.id, auth_open_until: null } as FactsRow;
  const from = now;
  for (; now < from + 8; now++) await countStrike(before, HERE);
  expect(recorded).toEqual([from + 4]);
});

test('DOS-02 wrong signatures from many addresses do not halt the agent at others, and write a bounded number of rows', async () => {
  const world = await startWorld('sqlite', { TRUSTED_PROXIES: '127.0.0.1' });
  const organisation = await world.organisation();
  await organisation.platform();
  const agent = await organisation.agent({ rules: ALLOW_ALL });
  const stranger = makeKeyPair();
  const iat = Math.floor(Date.now() / 1000);
  const tokens = Array.from({ length: 5 }, (_, i) =>
    signToken(
      { agent_id: agent.agentId, owner_id: agent.ownerId, iat, exp: iat + 60, jti: `${i}` },
      stranger.privateKey,
    ),
  );
  const own = { 'x-forwarded-for': '192.0.2.1' };
  // Addresses of one IPv6 network count as one.
  const addresses = Array.from({ length: sized(12, 100) }, (_, i) => `198.51.100.${i}`).concat(
    '2001:db8::1',
    '2001:db8::2',
  );
  for (const [i, address] of addresses.entries()) {
    for (const token of tokens) {
      const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': address };
      expect((await agent.get('/v1/agents/me', headers)).status).toBe(401);
    }
    if (i % 10 === 0) expect((await agent.act(READ, own)).status).toBe(200);
  }
  expect((await agent.act(READ, { 'x-forwarded-for': '198.51.100.7' })).body.reason).toBe('circuit_breaker_open');
  expect((await agent.act(READ, { 'x-forwarded-for': '2001:db8::3' })).body.reason).toBe('circuit_breaker_open');
  expect((await agent.act(READ, { 'x-forwarded-for': '2001:db8:0:1::3' })).status).toBe(200);
  expect((await agent.get('/v1/agents/me', own)).body).not.toHaveProperty('halt');
  const { rows } = (await organisation.ask('GET', '/owner/audit?reason=breaker_opened&limit=200')).body;
  expect(rows).toHaveLength(10);
});
