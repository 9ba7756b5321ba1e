/** Limits of rules: exactly how much passes in a period, on all replicas, and what an agent gets beyond that. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { purgeLimitCounts } from '../../broker/store/limit-counts.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { callMcp } from '../world/oauth-client.ts';
import { startReplica } from '../world/replica.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { ALLOW_ALL, fresh, givenWorld, READ, WRITE } from '../world/world.ts';

const NOW = Date.parse('2026-11-25T12:00:00Z');
const HOUR_MS = 3_600_000;
const THREE = { name: 'three-a-day', effect: 'deny', scopes: ['demo:write'], limit: { most: 3, per: 'day' } };
const MONEY = {
  name: 'money',
  effect: 'deny',
  scopes: ['demo:write'],
  limit: { most: 100, of: 'request.body.amount', per: 'day' },
};
const asking = (rule: object) => ({ ...rule, effect: 'require_approval' });

describe.each(STORES)(`limits of rules on %s${postgresNote}`, (store) => {
  const onOne = testOnOne(store);
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => newAgent());
  const newAgent = async (): Promise<TestAgent> => {
    const made = await organisation.agent({ rules: ALLOW_ALL });
    made.clock = () => world.running.broker.clock();
    return made;
  };
  beforeEach(() => {
    world.clock.skewMs = NOW - Date.now();
    onTestFinished(() => {
      world.clock.skewMs = 0;
    });
  });

  const write = (data: object = {}, by = agent) => by.act({ ...WRITE, data });
  const statuses = async (calls: Promise<Answer>[]) => (await Promise.all(calls)).map(({ status }) => status);
  const used = async () =>
    await world.db
      .selectFrom('limit_counts')
      .select(['rule', 'agent_id', 'used'])
      .where('organisation_id', '=', organisation.id)
      .orderBy('rule')
      .execute();

  test('calls up to the limit pass, and the next is refused with usage, remainder and the start of the next period', async () => {
    await organisation.guardrails([THREE]);
    for (let times = 1; times <= 3; times++) {
      const answer = await expectStatus(200, write());
      expect(answer.body._meta.limits).toEqual([
        {
          rule: 'three-a-day',
          most: 3,
          per: 'day',
          used: times,
          asked: 1,
          left: 3 - times,
          resets_at: '2026-11-26T00:00:00.000Z',
        },
      ]);
    }
    const refused = await withoutCalls(world, write);
    expect([refused.status, refused.body.reason]).toEqual([403, 'denied_by_guardrail']);
    expect(refused.body.limit).toEqual({
      rule: 'three-a-day',
      most: 3,
      per: 'day',
      used: 3,
      asked: 1,
      left: 0,
      resets_at: '2026-11-26T00:00:00.000Z',
    });
    expect(refused.body.detail).toContain('3 of 3 a day are used; the next day begins at 2026-11-26');
    const { row } = await evidenceOf(world, agent, refused.body.audit_id);
    expect(JSON.stringify(row)).toContain('three-a-day');
    // Other scopes are not counted.
    expect((await agent.act(READ)).status).toBe(200);
    world.clock.skewMs += 12 * HOUR_MS - 60_000;
    expect(await write()).toMatchObject({
      status: 403,
      body: { reason: 'denied_by_guardrail', limit: expect.anything() },
    });
    world.clock.skewMs += 60_000;
    const next = await write();
    expect([next.status, next.body._meta.limits[0].used]).toEqual([200, 1]);
  });

  test('amounts are summed: a call that would exceed the limit is refused, and one that fits passes', async () => {
    await organisation.guardrails([MONEY]);
    expect((await write({ amount: 60 })).status).toBe(200);
    const refused = await write({ amount: 40.5 });
    expect([refused.status, refused.body.limit]).toEqual([
      403,
      expect.objectContaining({ used: 60, asked: 40.5, left: 40, most: 100 }),
    ]);
    expect(refused.body.detail).toContain('60 of 100 a day are used, and it is 40.5');
    expect((await write({ amount: 40 })).status).toBe(200);
    expect((await write({ amount: 0 })).status).toBe(200);
    expect(await write({ amount: 0.01 })).toMatchObject({
      status: 403,
      body: { reason: 'denied_by_guardrail', limit: expect.anything() },
    });
  });

  onOne.each([[{}], [{ amount: '10' }], [{ amount: -5 }], [{ amount: null }], [{ amount: [1] }], [{ amount: true }]])(
    'a call whose amount is invalid (%j) is refused, and uses nothing',
    async (data) => {
      await organisation.guardrails([MONEY]);
      const refused = await write(data);
      expect([refused.status, refused.body.limit]).toEqual([403, expect.objectContaining({ asked: null, used: 0 })]);
      expect(refused.body.detail).toContain('because its condition failed');
      expect(await used()).toEqual([]);
    },
  );

  onOne('a single call above the limit is refused', async () => {
    await organisation.guardrails([MONEY]);
    expect(await write({ amount: 101 })).toMatchObject({
      status: 403,
      body: { reason: 'denied_by_guardrail', limit: expect.anything() },
    });
    expect((await write({ amount: 100 })).status).toBe(200);
  });

  test('of concurrent calls exactly as many pass as the limit allows', async () => {
    await organisation.guardrails([{ ...THREE, limit: { most: 5, per: 'day' } }]);
    const before = world.upstream.seen.length;
    const all = await statuses(Array.from({ length: 14 }, () => write()));
    expect(all.filter((status) => status === 200)).toHaveLength(5);
    expect(all.filter((status) => status === 403)).toHaveLength(9);
    expect(world.upstream.seen.length).toBe(before + 5);
    expect(await used()).toEqual([{ rule: 'guardrail three-a-day day', agent_id: agent.id, used: 5 }]);
  });

  test('each agent has its own count, a child uses its parent’s, and with `together` all agents share one', async () => {
    await organisation.guardrails([THREE, { ...THREE, name: 'all', limit: { most: 5, per: 'day', together: true } }]);
    const child = await childOf(world, organisation, agent);
    expect([(await write()).status, (await write({}, child)).status, (await write({}, child)).status]).toEqual([
      200, 200, 200,
    ]);
    expect((await write({}, child)).body.limit).toMatchObject({ rule: 'three-a-day', left: 0 });
    const other = await newAgent();
    expect([(await write({}, other)).status, (await write({}, other)).status]).toEqual([200, 200]);
    expect((await write({}, other)).body.limit).toMatchObject({ rule: 'all', used: 5, left: 0 });
    expect(await used()).toEqual([
      { rule: 'guardrail all day', agent_id: '', used: 5 },
      expect.objectContaining({ rule: 'guardrail three-a-day day' }),
      expect.objectContaining({ rule: 'guardrail three-a-day day' }),
    ]);
  });

  onOne('beyond a limit with require_approval the call is held; an approved call is made, and counts', async () => {
    await organisation.guardrails([asking(MONEY)]);
    expect((await write({ amount: 90 })).status).toBe(200);
    const held = await write({ amount: 20 });
    expect([held.status, held.body.limit]).toEqual([202, expect.objectContaining({ used: 90, asked: 20, left: 10 })]);
    expect(held.body.message).toContain('90 of 100 a day are used');
    // A call that fits passes meanwhile.
    expect((await write({ amount: 10 })).status).toBe(200);
    const path = `/owner/approvals/${held.body.approval_id}/approve`;
    expect((await organisation.ask('POST', path, {})).status).toBe(200);
    await expect
      .poll(async () => (await agent.get(`/v1/approvals/${held.body.approval_id}`)).body.executed_at)
      .toEqual(expect.any(String));
    expect(await used()).toEqual([
      { rule: expect.stringMatching(/^guardrail money day [0-9a-f]{16}$/), agent_id: agent.id, used: 120 },
    ]);
    expect((await write({ amount: 1 })).status).toBe(202);
    // A call with amount 0 never exceeds the limit.
    expect((await write({ amount: 0 })).status).toBe(200);
  });

  onOne('an approved call is not made when a deny rule with a limit has nothing left', async () => {
    await organisation.guardrails([
      THREE,
      { name: 'ask', effect: 'require_approval', when: 'request.body.big == true' },
    ]);
    const held = await expectStatus(202, write({ big: true }));
    // Held calls use nothing of a limit.
    for (let times = 0; times < 3; times++) expect((await write({ big: false })).status).toBe(200);
    await organisation.approve(held.body.approval_id);
    await expect
      .poll(async () => (await agent.get(`/v1/approvals/${held.body.approval_id}`)).body.execution_error)
      .toContain('denied_by_guardrail');
    expect((await used())[0]).toMatchObject({ used: 3 });
  });

  onOne('limits of policy rules count for each agent under the policy', async () => {
    const rules = [{ effect: 'allow' }, { ...THREE, limit: { most: 1, per: 'hour' } }];
    const one = await organisation.agent({ rules });
    one.clock = agent.clock;
    expect((await write({}, one)).status).toBe(200);
    const refused = await write({}, one);
    expect([refused.status, refused.body.reason, refused.body.limit.per]).toEqual([403, 'denied_by_policy', 'hour']);
    world.clock.skewMs += HOUR_MS;
    expect((await write({}, one)).status).toBe(200);
  });

  test('calls that are refused for other reasons, held, repeated by key, or simulated use nothing', async () => {
    await organisation.guardrails([THREE, { name: 'no', effect: 'deny', when: 'request.body.no == true' }]);
    const no = await write({ no: true });
    expect([no.status, no.body.reason, no.body.limit]).toEqual([403, 'denied_by_guardrail', undefined]);
    const key = { 'idempotency-key': 'once' };
    for (let times = 0; times < 4; times++)
      expect((await agent.act({ ...WRITE, data: { no: false } }, key)).status).toBe(200);
    expect((await used())[0]).toMatchObject({ used: 1 });
    const tried = await organisation.ask('POST', '/owner/simulate', {
      agent_id: agent.agentId,
      ...WRITE,
      data: { no: false },
    });
    expect(tried.status, tried.text).toBe(200);
    expect((await used())[0]).toMatchObject({ used: 1 });
    const { scopes, conditionalScopes } = (await agent.get('/v1/agent/permissions')).body.data.platforms[0];
    expect(scopes).toContain('demo:write');
    expect(conditionalScopes).toContain('demo:write');
  });

  onOne('/proxy and /mcp report limits in the same fields', async () => {
    await organisation.guardrails([{ ...THREE, limit: { most: 1, per: 'day' } }]);
    expect((await write()).status).toBe(200);
    const raw = await agent.request('POST', '/proxy/demo-main/items', {
      body: '{}',
      headers: { 'content-type': 'application/json' },
    });
    expect([raw.status, raw.body.limit]).toEqual([403, expect.objectContaining({ used: 1, left: 0 })]);
    const args = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: {} };
    const message = { method: 'tools/call', params: { name: 'write_platform', arguments: args } };
    const told = (await callMcp(world.running.baseUrl, agent.token(), message)).text;
    const { result } = JSON.parse(/^data: (.*)$/m.exec(told)?.[1] ?? told);
    expect(result.structuredContent).toMatchObject({
      status: 'refused',
      limit: { used: 1, left: 0, resets_at: '2026-11-26T00:00:00.000Z' },
      next: expect.stringContaining('before 2026-11-26T00:00:00.000Z'),
    });
  });

  test('counts belong to their organisation, and old ones are deleted', async () => {
    await organisation.guardrails([{ ...THREE, limit: { most: 1, per: 'day', together: true } }]);
    const elsewhere = await world.demoOrganisation({
      guardrails: [{ ...THREE, limit: { most: 1, per: 'day', together: true } }],
    });
    const theirs = await elsewhere.agent({ rules: ALLOW_ALL });
    theirs.clock = agent.clock;
    expect([(await write()).status, (await write({}, theirs)).status, (await write()).status]).toEqual([200, 200, 403]);
    await purgeLimitCounts(world.db, NOW - 24 * HOUR_MS);
    expect(await used()).toHaveLength(1);
    await purgeLimitCounts(world.db, NOW);
    expect(await used()).toEqual([]);
  });

  test('owners see the agent’s usage of each limit in force, and when it resets', async () => {
    await organisation.guardrails([
      MONEY,
      { ...THREE, name: 'all', limit: { most: 5, per: 'month', together: true } },
      { name: 'none', effect: 'deny', scopes: ['demo:nothing'] },
    ]);
    const rules = [{ effect: 'allow' }, { ...THREE, limit: { most: 2, per: 'hour' } }];
    const one = await organisation.agent({ rules });
    one.clock = agent.clock;
    const child = await childOf(world, organisation, one);
    expect((await write({ amount: 60.5 }, one)).status).toBe(200);
    expect((await write({ amount: 1 }, agent)).status).toBe(200);
    const limitsOf = async ({ agentId }: { agentId: string }) =>
      (await organisation.ask('GET', `/owner/agents/${agentId}`)).body.limits;
    const money = {
      ...MONEY.limit,
      source: 'guardrail',
      rule: 'money',
      together: false,
      used: 60.5,
      resets_at: '2026-11-26T00:00:00.000Z',
    };
    const all = {
      source: 'guardrail',
      rule: 'all',
      most: 5,
      per: 'month',
      of: null,
      together: true,
      used: 2,
      resets_at: '2026-12-01T00:00:00.000Z',
    };
    const hourly = {
      source: 'policy',
      rule: 'three-a-day',
      most: 2,
      per: 'hour',
      of: null,
      together: false,
      used: 1,
      resets_at: '2026-11-25T13:00:00.000Z',
    };
    expect(await limitsOf(one)).toEqual([money, all, hourly]);
    // A child's usage is that of its parent.
    expect(await limitsOf(child)).toEqual([money, all, hourly]);
    expect(await limitsOf(agent)).toEqual([{ ...money, used: 1 }, all]);
    world.clock.skewMs += HOUR_MS;
    expect(await limitsOf(one)).toEqual([money, all, { ...hourly, used: 0, resets_at: '2026-11-25T14:00:00.000Z' }]);
  });

  onOne('limits can be in a governance file, and a plan describes them', async () => {
    const yaml = `guardrails:\n  - { name: money, effect: deny, scopes: ["demo:write"], limit: { most: 100, of: request.body.amount, per: day } }\n`;
    const planned = await expectStatus(200, organisation.ask('POST', '/owner/governance/plan', { text: yaml }));
    expect(JSON.stringify(planned.body.changes)).toContain('over 100 a day of request.body.amount');
    expect((await organisation.ask('POST', '/owner/governance/apply', { text: yaml })).status).toBe(200);
    const { text } = (await organisation.ask('GET', '/owner/governance')).body;
    expect((await organisation.ask('POST', '/owner/governance/plan', { text })).body.changes).toEqual([]);
    expect(await write({ amount: 101 })).toMatchObject({
      status: 403,
      body: { reason: 'denied_by_guardrail', limit: expect.anything() },
    });
    const wrong = yaml.replace('per: day', 'per: fortnight');
    expect((await organisation.ask('POST', '/owner/governance/plan', { text: wrong })).text).toContain('limit.per');
  });
});

test.skipIf(STORES.length < 2)('two replicas together let exactly as many calls pass as one', async () => {
  const { startWorld } = await import('../world/world.ts');
  const world = await startWorld('postgres');
  const organisation = await world.demoOrganisation({ guardrails: [{ ...THREE, limit: { most: 6, per: 'day' } }] });
  const agent = await organisation.agent({ rules: ALLOW_ALL });
  const there = await startReplica(world);
  onTestFinished(() => void there.process.signal('SIGKILL'));
  const other = there.asks(agent);
  const before = world.upstream.seen.length;
  const all = await Promise.all(
    Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? agent : other).act({ ...WRITE, data: {} })),
  );
  expect(all.filter(({ status }) => status === 200)).toHaveLength(6);
  expect(world.upstream.seen.length).toBe(before + 6);
});
