/** Every status of an agent and every cause of a halt, caused and ended through the public entry points (specification, AgentHalt). */
import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, expectStatus, jsonPost, makeKeyPair, send, signToken, TestAgent } from '../world/agent.ts';
import { expectEnvelope, verifyReceipt, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const SUSPENDING = { name: 'tripwire', effect: 'suspend', endpoints: ['/items/9'] };

describe.each(ONE_STORE)(`statuses and halts on %s${postgresNote}`, (store) => {
  let policy: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ guardrails: [SUSPENDING] }));
  beforeAll(async () => {
    policy = await organisation.policy([{ effect: 'allow' }]);
    const settings = { publish_identity_documents: true, auto_suspend: { refusals: 3, within_seconds: 600 } };
    expect((await organisation.ask('POST', '/owner/organisation', settings)).status).toBe(200);
  });

  const newAgent = () => organisation.agent({ name: `a-${Math.random()}`, policy });
  const move = async (agent: { agentId: string }, verb: string, body = {}) =>
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/${verb}`, body);
  const statusOf = async ({ agentId }: { agentId: string }) =>
    (await organisation.ask('GET', '/owner/agents')).body.agents.find(
      (one: { agent_id: string }) => one.agent_id === agentId,
    )?.status;
  const did = async ({ agentId }: { agentId: string }) =>
    await send(`${world.running.baseUrl}/agents/${agentId}/did.json`, {});
  const post = (path: string, body: unknown) => send(world.running.baseUrl + path, jsonPost(body));
  const eventsOf = async ({ agentId }: { agentId: string }, reason: string) =>
    (await organisation.ask('GET', `/owner/audit?agent=${agentId}&kind=event&reason=${reason}`)).body.rows;

  /** Expects the row of an event in the audit with its hash, and no receipt. */
  async function expectNoReceipt(
    event: {
      id: string;
      row_hash: string | null;
      receipt_kid: string | null;
      rules?: unknown;
      sentence?: unknown;
      platform_name?: unknown;
      standing?: unknown;
      agent_names?: unknown;
    },
    agent: TestAgent,
  ) {
    expect(event).toMatchObject({ row_hash: expect.stringMatching(/^[0-9a-f]{64}$/), receipt_kid: null });
    const path = `/v1/audit/${event.id}/receipt`;
    expectEnvelope(await organisation.ask('GET', path), 404, 'not_found');
    expectEnvelope(await agent.get(path), 404, 'not_found');
    const exported = await organisation.ask('GET', `/owner/audit/export?agent=${agent.agentId}&kind=event`);
    const lines = exported.text.split('\n').filter(Boolean);
    const line = lines.map((text) => JSON.parse(text)).find(({ id }) => id === event.id);
    // The list has more members than the stored row.
    const {
      rules: _rules,
      sentence: _sentence,
      platform_name: _name,
      standing: _standing,
      agent_names: _names,
      ...stored
    } = event;
    expect(line).toEqual({ ...stored, receipt: null });
  }

  describe('statuses', () => {
    test('an agent that a file suspends before it has a key waits for one when it is resumed, and becomes active with it', async () => {
      const text = `agents: { quiet: { owner: '${organisation.owner.email}', policy: default, suspended: true } }`;
      const applied = await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', { text }));
      const [{ agent_id: agentId, token }] = applied.body.bootstrap_tokens;
      expect(await statusOf({ agentId })).toBe('suspended');
      const resumed = await move({ agentId }, 'resume');
      expect([resumed.status, resumed.body.status]).toEqual([200, 'pending_bind']);
      const bound = await post('/v1/agents/bind', { bootstrap_token: token, public_key_pem: makeKeyPair().publicPem });
      expect([bound.status, bound.body.status]).toEqual([200, 'active']);
    });

    test('unknown, pending, then active: a registered agent cannot act before an owner approves and its key is collected', async () => {
      const asked = await post('/v1/register', {
        owner_id: organisation.owner.id,
        agent_name: 'newcomer',
        requested_scopes: [{ platformId: 'demo', scopes: ['demo:read'] }],
      });
      const { registration_token: token, client_id: agentId } = asked.body;
      expect((await did({ agentId })).status).toBe(404);
      const keys = makeKeyPair();
      const early = new TestAgent({
        baseUrl: world.running.baseUrl,
        id: '',
        agentId,
        ownerId: organisation.owner.id,
        keys,
      });
      expectEnvelope(await early.act(READ), 401, 'invalid_signature');
      expect((await organisation.ask('POST', `/v1/register/approve/${token}`)).status).toBe(200);
      expect(await statusOf({ agentId })).toBe('pending');
      expect((await did({ agentId })).status).toBe(404);
      expectEnvelope(await early.act(READ), 401, 'invalid_signature');
      const { status } = await send(`${world.running.baseUrl}/v1/register/claim-key/${token}`, {});
      expect(status).toBe(200);
      expect(await statusOf({ agentId })).toBe('active');
      expect((await did({ agentId })).status).toBe(200);
    });

    test('pending_bind, then active: an agent of a governance file has no key until it binds one', async () => {
      const other = await world.organisation();
      const applied = await other.ask('POST', '/owner/governance/apply', { text: 'agents: { waits: {} }', values: {} });
      const [{ agent_id: agentId, token, bootstrap_token = token }] = applied.body.bootstrap_tokens;
      const listed = async () => (await other.ask('GET', '/owner/agents')).body.agents[0];
      expect((await listed()).status).toBe('pending_bind');
      expect((await did({ agentId })).status).toBe(404);
      const keys = makeKeyPair();
      const agent = new TestAgent({ baseUrl: world.running.baseUrl, id: '', agentId, ownerId: other.owner.id, keys });
      expectEnvelope(await agent.get('/v1/agents/me'), 401, 'invalid_signature');
      expect((await post('/v1/agents/bind', { bootstrap_token, public_key_pem: keys.publicPem })).status).toBe(200);
      expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
      expect((await listed()).status).toBe('active');
    });

    test('suspended, revoked, deleted, each recorded; revocation is final', async () => {
      const agent = await newAgent();
      expect((await agent.get('/v1/agents/me')).body).toMatchObject({ agent_status: 'active' });
      await move(agent, 'suspend');
      expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('suspended');
      expect((await did(agent)).body.authentication).toEqual([]);
      expectEnvelope(await move(agent, 'delete'), 409, 'conflict');
      await move(agent, 'revoke', { reason: 'leaked' });
      const me = await agent.get('/v1/agents/me');
      expect(me.body).toMatchObject({
        agent_status: 'revoked',
        halt: { state: 'revoked', cause: 'owner_manual', detail: 'leaked', recoverable_by: 'owner' },
      });
      expect((await did(agent)).status).toBe(410);
      expectEnvelope(await move(agent, 'resume'), 409, 'conflict');
      expect((await move(agent, 'delete')).body.status).toBe('deleted');
      expectEnvelope(await agent.get('/v1/agents/me'), 401, 'invalid_signature');
      expectEnvelope(await withoutCalls(world, () => agent.act(READ)), 401, 'invalid_signature');
      expect((await did(agent)).status).toBe(410);
      expect(await statusOf(agent)).toBeUndefined();
      for (const verb of ['suspend', 'resume', 'revoke', 'delete'])
        expectEnvelope(await move(agent, verb), 404, 'not_found');
      for (const reason of ['agent_suspended', 'agent_revoked', 'agent_deleted'])
        expect(await eventsOf(agent, reason)).toHaveLength(1);
    });
  });

  /** Makes a call, and checks that the other entry points report the same halt. */
  const haltOf = async (agent: TestAgent): Promise<Record<string, unknown>> => {
    const answer = await withoutCalls(world, () => agent.act(READ));
    expect([answer.status, answer.body.error], answer.text).toEqual([403, 'agent_halted']);
    const { halt, report_hint } = answer.body;
    expect(Object.keys(halt).sort()).toEqual(
      ['state', 'since', 'cause', 'detail', 'recoverable_by', 'retry_after_seconds', 'instructions'].sort(),
    );
    expect(Date.parse(halt.since)).toBeLessThanOrEqual(world.running.broker.clock());
    expect(Date.parse(halt.since)).toBeGreaterThan(world.running.broker.clock() - 120_000);
    expect(halt.detail).toMatch(/\S/);
    expect(halt.instructions).toMatch(/\.$/);
    const waits = halt.retry_after_seconds;
    expect(waits === null).toBe(halt.recoverable_by === 'owner');
    expect(answer.headers.get('retry-after')).toBe(waits === null ? null : String(waits));
    if (waits !== null) expect(halt.instructions).toContain('retry_after_seconds');
    else expect(halt.instructions).toContain('ask the owner');
    // The suggested report is accepted unchanged while the agent is halted.
    await expectStatus(201, agent.post(new URL(report_hint.url).pathname, report_hint.suggested_payload));
    return halt;
  };
  const here = async (agent: TestAgent): Promise<Answer> => await agent.get('/v1/agents/me');

  test.each<[string, { happen(agent: TestAgent): Promise<unknown>; detail: RegExp }]>([
    ['owner_manual', { happen: (agent) => move(agent, 'suspend', { reason: 'look first' }), detail: /^look first$/ }],
    [
      'suspended_by_policy',
      { happen: (agent) => agent.act({ ...READ, endpoint: '/items/9' }), detail: /^guardrail tripwire$/ },
    ],
    [
      'anomaly_auto_suspend',
      {
        happen: async (agent) => {
          for (let i = 0; i < 3; i++) await agent.act({ ...READ, scope: 'demo:nothing' });
        },
        detail: /^3 refused calls within 600 s/,
      },
    ],
    [
      'breaker_auth_failure',
      {
        happen: async (agent) => {
          const stranger = makeKeyPair();
          const iat = Math.floor(agent.clock() / 1000);
          for (let i = 0; i < 5; i++) {
            const claims = { agent_id: agent.agentId, owner_id: agent.ownerId, iat, exp: iat + 60, jti: `${i}` };
            const authorization = `Bearer ${signToken(claims, stranger.privateKey)}`;
            expectEnvelope(await agent.get('/v1/agents/me', { authorization }), 401, 'invalid_signature');
          }
        },
        detail: /^5 failures within 60 s/,
      },
    ],
    [
      'breaker_api_error',
      {
        happen: async (agent) => {
          for (let i = 0; i < 50; i++)
            expect(await agent.act({ ...READ, endpoint: '//x' })).toMatchObject({
              status: 400,
              body: { error: 'invalid_endpoint' },
            });
        },
        detail: /^50 failures within 60 s/,
      },
    ],
    [
      'breaker_upstream_failure',
      {
        happen: async (agent) => {
          world.upstream.answer = (_request, response) => response.writeHead(503).end();
          for (let i = 0; i < 20; i++) await agent.act(READ);
          world.upstream.answer = undefined;
        },
        detail: /^20 failures within 60 s/,
      },
    ],
  ])('%s: reported by every entry point, recorded, and ended as the halt says', async (cause, { happen, detail }) => {
    const agent = await newAgent();
    expect((await agent.act(READ)).status).toBe(200);
    await happen(agent);
    const halt = await haltOf(agent);
    expect(halt).toMatchObject({ cause, detail: expect.stringMatching(detail) });
    const me = await here(agent);
    expect(me.body.halt).toMatchObject({ ...halt, retry_after_seconds: me.body.halt.retry_after_seconds });
    const permissions = await agent.get('/v1/agent/permissions');
    expect([permissions.status, permissions.body.error, permissions.body.halt.cause]).toEqual([
      403,
      'agent_halted',
      cause,
    ]);
    const byTime = cause.startsWith('breaker');
    const reason = byTime ? 'circuit_breaker_open' : 'agent_suspended';
    const asks = async (path: string, question: object) => (await agent.post(path, question)).body;
    const evaluated = await asks('/v1/authzen/access', {
      subject: { type: 'agent', id: agent.id },
      action: { name: READ.scope },
      resource: { type: 'platform', id: READ.platform },
    });
    expect(evaluated).toMatchObject({ decision: false, reason });
    const trusted = { entity_id: agent.agentId, authority_id: world.running.broker.did, resource: READ.platform };
    expect(await asks('/v1/trqp/authorization', { ...trusted, action: READ.scope })).toMatchObject({
      authorized: false,
      message: reason,
    });
    // A breaker does not affect whether the agent is recognised.
    expect((await asks('/v1/trqp/recognition', { ...trusted, action: '*', resource: '*' })).recognized).toBe(byTime);
    expect(halt.state).toBe(byTime ? 'breaker_open' : 'suspended');
    const [event, ...more] = await eventsOf(agent, byTime ? 'breaker_opened' : 'agent_suspended');
    expect(more).toEqual([]);
    expect(event.flags.change).toMatchObject(cause === 'owner_manual' ? {} : { by: 'broker', how: 'broker', cause });
    if (byTime) await expectNoReceipt(event, agent);
    else {
      const { receipt } = (await organisation.ask('GET', `/v1/audit/${event.id}/receipt`)).body;
      const { payload } = await verifyReceipt(world, receipt);
      expect(payload).toMatchObject({ kind: 'event', agent: agent.agentId, change: event.flags.change });
      expect(JSON.stringify(payload), 'no address in a receipt').not.toContain('127.0.0.1');
    }

    if (byTime) world.clock.skewMs = 61_000;
    else expect((await move(agent, 'resume')).status).toBe(200);
    expect((await agent.act(READ)).status).toBe(200);
    expect((await here(agent)).body).not.toHaveProperty('halt');
    if (!byTime) return;
    const closed = await eventsOf(agent, 'breaker_closed');
    expect(closed).toHaveLength(1);
    await expectNoReceipt(closed[0], agent);
  });

  test.each<[string, string, (agent: TestAgent) => Promise<unknown>]>([
    ['suspended', 'agent_suspended', (agent) => move(agent, 'suspend')],
    ['revoked', 'agent_revoked', (agent) => move(agent, 'revoke')],
    [
      'breaker_open',
      'circuit_breaker_open',
      async (agent) => {
        for (let i = 0; i < 50; i++) await agent.act({});
      },
    ],
  ])(
    'a halted agent (%s) is refused before its body is read, and malformed bodies do not count',
    async (state, reason, halt) => {
      const agent = await newAgent();
      await halt(agent);
      const headers = { 'content-type': 'application/json' };
      const malformed = [
        () => agent.act({}),
        () => agent.act('{"platform":'),
        () => agent.act({ ...READ, endpoint: '//x' }),
        () => agent.act({ ...READ, headers: { 'a b': 'c' } }),
        () => agent.act(READ, { 'idempotency-key': ' ' }),
        () => agent.act(READ, { 'x-svc-caller': 'nobody' }),
      ];
      for (const send of malformed) {
        const answer = await withoutCalls(world, send);
        const { error, reason: why, audit_id } = answer.body;
        expect([answer.status, error, why, answer.body.halt?.state], answer.text).toEqual([
          403,
          'agent_halted',
          reason,
          state,
        ]);
        const [row] = (await organisation.ask('GET', `/owner/audit?agent=${agent.agentId}&kind=action`)).body.rows;
        expect(row).toMatchObject({ id: audit_id, result: 'denied', reason });
      }
      for (const body of ['{}', `{${' '.repeat(1024 * 1024)}}`]) {
        for (const [path, refused] of [
          ['/v1/access-request', 'agent_halted'],
          ['/v1/consent/caller/start', 'agent_halted'],
          ['/v1/agents/children', 'agent_not_active'],
        ] as const) {
          const answer = await agent.request('POST', path, { body, headers });
          expect([path, answer.status, answer.body.error, answer.body.halt?.state]).toEqual([
            path,
            403,
            refused,
            state,
          ]);
        }
      }
    },
  );

  test('unknown: an agent whose lifetime has ended', async () => {
    const agent = await organisation.agent({ policy, agent: { expires_at: Date.now() + 30_000 } });
    expect((await agent.act(READ)).status).toBe(200);
    world.clock.skewMs = 31_000;
    const { body } = await agent.act(READ);
    expect([body.reason, body.halt.cause, body.halt.state]).toEqual(['agent_revoked', 'unknown', 'revoked']);
  });
});
