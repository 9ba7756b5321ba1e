/** Look-back rules: what an agent may do after it made another call, through any entry point, on every replica. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { earlierCalls } from '../../broker/calls/earlier-calls.ts';
import type { Facts } from '../../broker/policy/facts.ts';
import { purgeCallMarks } from '../../broker/store/call-marks.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { callMcp } from '../world/oauth-client.ts';
import { startReplica } from '../world/replica.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { ALLOW_ALL, fresh, givenWorld, READ, WRITE } from '../world/world.ts';

const NOW = Date.parse('2026-11-25T12:00:00Z');
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
const STRANGERS = { scopes: ['demo:read'], endpoints: ['/items/strange'], within: '8h' };
const NOTHING_LEAVES = { name: 'nothing-leaves', effect: 'deny', scopes: ['demo:write'], after: STRANGERS };
const STRANGE = { ...READ, endpoint: '/items/strange' };
const asking = (rule: object) => ({ ...rule, effect: 'require_approval' });
const REFUSED = 'denied_by_guardrail';
const JSON_HEADERS = { 'content-type': 'application/json' };

describe.each(STORES)(`rules that look back on %s${postgresNote}`, (store) => {
  const onOne = testOnOne(store);
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => newAgent());
  const newAgent = async (rules: object[] = ALLOW_ALL): Promise<TestAgent> => {
    const made = await organisation.agent({ rules: rules as never });
    made.clock = () => world.running.broker.clock();
    return made;
  };
  beforeEach(() => {
    world.clock.skewMs = NOW - Date.now();
    onTestFinished(() => {
      world.clock.skewMs = 0;
      world.upstream.answer = undefined;
    });
  });
  const write = (by = agent, data: object = {}) => by.act({ ...WRITE, data });
  /** Returns the status, or the reason of a refusal. */
  const became = async (answer: Promise<Answer>): Promise<number | string> => {
    const { status, body } = await answer;
    return status === 403 ? body.reason : status;
  };
  const read = async (by = agent): Promise<string> => {
    const answer = await expectStatus(200, by.act(STRANGE));
    return answer.body._meta.audit_id;
  };
  const marks = () =>
    world.db
      .selectFrom('call_marks')
      .select(['agent_id', 'made_at', 'audit_id'])
      .where('organisation_id', '=', organisation.id)
      .execute();

  test('a call passes until the agent made the other call; then it is refused, and the refusal names that call', async () => {
    await organisation.guardrails([NOTHING_LEAVES]);
    expect((await write()).status).toBe(200);
    // The rule does not look back at another endpoint of the same scope.
    expect((await agent.act(READ)).status).toBe(200);
    expect((await write()).status).toBe(200);
    const cause = await read();
    const refused = await withoutCalls(world, write);
    expect([refused.status, refused.body.reason]).toEqual([403, 'denied_by_guardrail']);
    expect(refused.body.detail).toContain(
      `nothing-leaves denies this call: the agent made the call ${cause} at 2026-11-25T12:00:`,
    );
    expect(refused.body.detail).toContain('the rule applies until 2026-11-25T20:01:');
    const { row, payload } = await evidenceOf(world, agent, refused.body.audit_id);
    const matched = [{ source: 'guardrail', name: 'nothing-leaves', effect: 'deny', after: cause }];
    expect(JSON.parse(row.decision ?? '{}').matched).toEqual(matched);
    expect(payload.decision.matched).toEqual(matched);
    // Reads are still allowed.
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('the rule ends after its window, and applies again after another such call', async () => {
    await organisation.guardrails([NOTHING_LEAVES]);
    await read();
    world.clock.skewMs += 8 * HOUR_MS;
    expect(await became(write())).toBe(REFUSED);
    world.clock.skewMs += MINUTE_MS + 5_000;
    expect((await write()).status).toBe(200);
    await read();
    expect(await became(write())).toBe(REFUSED);
  });

  test('a call within a minute of an equal one is not noted again; a later one is', async () => {
    await organisation.guardrails([NOTHING_LEAVES]);
    const first = await read();
    await read();
    expect((await marks()).map(({ audit_id }) => audit_id)).toEqual([first]);
    world.clock.skewMs += MINUTE_MS;
    const later = await read();
    expect((await marks()).map(({ audit_id }) => audit_id)).toEqual([later]);
  });

  test('the rule covers a parent with its children, and no other agent', async () => {
    await organisation.guardrails([NOTHING_LEAVES]);
    const child = await childOf(world, organisation, agent);
    await read(child);
    expect([await became(write()), await became(write(child))]).toEqual([REFUSED, REFUSED]);
    const other = await newAgent();
    expect((await write(other)).status).toBe(200);
    const second = await childOf(world, organisation, other);
    await read(other);
    expect(await became(write(second))).toBe(REFUSED);
  });

  onOne('refused and pending calls do not count as made; an approved call does', async () => {
    await organisation.guardrails([
      NOTHING_LEAVES,
      { name: 'ask', effect: 'require_approval', endpoints: ['/items/strange'] },
    ]);
    const held = await expectStatus(202, agent.act(STRANGE));
    expect((await write()).status).toBe(200);
    await organisation.approve(held.body.approval_id);
    await expect
      .poll(async () => (await agent.get(`/v1/approvals/${held.body.approval_id}`)).body.executed_at)
      .toEqual(expect.any(String));
    expect(await became(write())).toBe(REFUSED);
  });

  onOne('with require_approval the call is held, names the earlier call, and is made after approval', async () => {
    await organisation.guardrails([asking(NOTHING_LEAVES)]);
    const cause = await read();
    const held = await expectStatus(202, write());
    expect(held.body.message).toContain(`the agent made the call ${cause}`);
    const shown = await organisation.ask('GET', `/owner/approvals/${held.body.approval_id}`);
    expect(shown.body.held_because).toMatchObject({
      detail: expect.stringContaining(cause),
      rules: expect.arrayContaining([
        expect.objectContaining({ name: 'nothing-leaves', effect: 'require_approval', after: cause }),
      ]),
    });
    await organisation.approve(held.body.approval_id);
    await expect
      .poll(async () => (await agent.get(`/v1/approvals/${held.body.approval_id}`)).body.executed_at)
      .toEqual(expect.any(String));
  });

  onOne('a call approved earlier is not made when a deny rule has applied since', async () => {
    await organisation.guardrails([
      NOTHING_LEAVES,
      { name: 'ask', effect: 'require_approval', when: 'has(request.body.big)' },
    ]);
    const held = await expectStatus(202, write(agent, { big: true }));
    await read();
    await organisation.approve(held.body.approval_id);
    await expect
      .poll(async () => (await agent.get(`/v1/approvals/${held.body.approval_id}`)).body.execution_error)
      .toContain('denied_by_guardrail');
  });

  onOne('a look-back guardrail can suspend the agent, and a rule of a policy applies to its agents', async () => {
    await organisation.guardrails([{ ...NOTHING_LEAVES, effect: 'suspend' }]);
    await read();
    expect(await became(write())).toBe(REFUSED);
    expect((await agent.act(READ)).body.reason).toBe('agent_suspended');
    await organisation.guardrails([]);
    const under = await newAgent([{ effect: 'allow' }, { ...NOTHING_LEAVES, name: undefined }]);
    await read(under);
    const refused = await write(under);
    expect([refused.status, refused.body.reason]).toEqual([403, 'denied_by_policy']);
    expect(refused.body.detail).toContain(
      'every call with demo:write is denied for 8h after /items/strange with demo:read',
    );
    const other = await newAgent();
    await read(other);
    expect((await write(other)).status).toBe(200);
  });

  onOne('conditions select the calls looked back at; one that fails to evaluate counts as a match', async () => {
    const when = 'request.query.from == "outside"';
    await organisation.guardrails([{ ...NOTHING_LEAVES, after: { scopes: ['demo:read'], when, within: '1h' } }]);
    expect((await agent.act({ ...READ, endpoint: '/items?from=inside' })).status).toBe(200);
    expect((await write()).status).toBe(200);
    expect((await agent.act({ ...READ, endpoint: '/items?from=outside' })).status).toBe(200);
    expect(await became(write())).toBe(REFUSED);
    const other = await newAgent();
    expect((await other.act(READ)).status).toBe(200);
    expect(await became(write(other))).toBe(REFUSED);
  });

  test('a rule that looks back at the calls it matches lets the first one pass', async () => {
    await organisation.guardrails([{ ...NOTHING_LEAVES, after: { scopes: ['demo:write'], within: '5m' } }]);
    expect([await became(write()), await became(write())]).toEqual([200, REFUSED]);
  });

  onOne(
    'the rule covers all entry points: a read through one is looked back at by the others, /mcp included',
    async () => {
      await organisation.guardrails([NOTHING_LEAVES]);
      await expectStatus(200, agent.request('GET', '/proxy/demo-main/items/strange'));
      expect(await became(write())).toBe(REFUSED);
      const raw = await agent.request('POST', '/proxy/demo-main/items', { body: '{}', headers: JSON_HEADERS });
      expect([raw.status, raw.body.reason]).toEqual([403, 'denied_by_guardrail']);
      const other = await newAgent();
      const args = { platform: 'demo', scope: 'demo:read', endpoint: '/items/strange' };
      const message = { method: 'tools/call', params: { name: 'read_platform', arguments: args } };
      expect((await callMcp(world.running.baseUrl, other.token(), message)).text).toContain('/v1/items/strange');
      const refused = await other.request('POST', '/proxy/demo-main/items', { body: '{}', headers: JSON_HEADERS });
      expect([refused.status, refused.body.reason]).toEqual([403, REFUSED]);
    },
  );

  onOne('a simulation by an owner shows the rule and notes nothing; permissions are conditional', async () => {
    await organisation.guardrails([NOTHING_LEAVES]);
    const simulate = async (action: object) => {
      const tried = await organisation.ask('POST', '/owner/simulate', { agent_id: agent.agentId, ...action });
      expect(tried.status, tried.text).toBe(200);
      return tried.body;
    };
    expect((await simulate(STRANGE)).decision).toBe('allow');
    expect((await simulate({ ...WRITE, data: {} })).decision).toBe('allow');
    expect(await marks()).toEqual([]);
    const cause = await read();
    expect(await simulate({ ...WRITE, data: {} })).toMatchObject({
      decision: 'deny',
      matched: [{ name: 'nothing-leaves', after: cause }],
    });
    const { conditionalScopes } = (await agent.get('/v1/agent/permissions')).body.data.platforms[0];
    expect(conditionalScopes).toContain('demo:write');
  });

  test('owners see which rules apply, because of which call and until when; for a child those of its parent', async () => {
    await organisation.guardrails([
      NOTHING_LEAVES,
      { ...NOTHING_LEAVES, name: 'other', after: { methods: ['DELETE'], within: '1h' } },
    ]);
    const one = await newAgent([
      { effect: 'allow' },
      { effect: 'require_approval', after: { ...STRANGERS, within: '1h' } },
    ]);
    const child = await childOf(world, organisation, one);
    const seen = async ({ agentId }: { agentId: string }) =>
      (await organisation.ask('GET', `/owner/agents/${agentId}`)).body.earlier;
    expect(await seen(one)).toEqual([]);
    const cause = await read(one);
    const made_at = expect.stringMatching(/^2026-11-25T12:00:/);
    const both = [
      {
        source: 'guardrail',
        rule: 'nothing-leaves',
        audit_id: cause,
        made_at,
        until: expect.stringMatching(/^2026-11-25T20:01:/),
      },
      {
        source: 'policy',
        rule: 'every call waits for 1h after /items/strange with demo:read',
        audit_id: cause,
        made_at,
        until: expect.stringMatching(/^2026-11-25T13:01:/),
      },
    ];
    expect(await seen(one)).toEqual(both);
    expect(await seen(child)).toEqual(both);
    expect(await seen(agent)).toEqual([]);
    world.clock.skewMs += 2 * HOUR_MS;
    expect(await seen(one)).toEqual(both.slice(0, 1));
  });

  test('a call is noted before its answer can be read: the rule already applies while the answer is pending', async () => {
    await organisation.guardrails([NOTHING_LEAVES]);
    // The platform has received the call, and nobody has read an answer yet.
    let answered = () => {};
    const asked = new Promise<void>((resolve) => {
      world.upstream.answer = (_, response) => {
        resolve();
        answered = () => response.end('{}');
      };
    });
    const reading = agent.act(STRANGE);
    await asked;
    world.upstream.answer = undefined;
    expect(await became(write())).toBe(REFUSED);
    answered();
    expect((await reading).status).toBe(200);
  });

  describe('when an answer is read later than its call was made', () => {
    const SHORT = { ...NOTHING_LEAVES, after: { ...STRANGERS, within: '45m' } };
    const isOver = () => {
      world.clock.skewMs += 47 * MINUTE_MS;
    };

    test('for an approved call the rule applies from when its result was fetched', async () => {
      await organisation.guardrails([
        SHORT,
        { name: 'ask', effect: 'require_approval', endpoints: ['/items/strange'] },
      ]);
      const held = await agent.act(STRANGE);
      await organisation.approve(held.body.approval_id);
      const collect = () => agent.get(`/v1/approvals/${held.body.approval_id}`);
      isOver();
      expect((await write()).status).toBe(200);
      expect((await collect()).body.result.status).toBe(200);
      const refused = await write();
      expect([refused.status, refused.body.reason]).toEqual([403, REFUSED]);
      expect(refused.body.detail).toContain('the agent made the call');
    });

    onOne('for a held call through /proxy the rule applies from when a retry got the answer', async () => {
      const ask = () =>
        agent.request('PATCH', '/proxy/demo-main/items/strange', {
          body: '{}',
          headers: { ...JSON_HEADERS, 'x-svc-wait': '0' },
        });
      const strange = { ...SHORT, after: { endpoints: ['/items/strange'], within: '45m' } };
      await organisation.guardrails([
        strange,
        { name: 'ask', effect: 'require_approval', endpoints: ['/items/strange'] },
      ]);
      const held = await ask();
      expect([held.status, held.body.error]).toEqual([403, 'approval_pending']);
      await organisation.approve(held.body.approval_id);
      isOver();
      expect((await write()).status).toBe(200);
      expect((await ask()).status).toBe(200);
      expect(await became(write())).toBe(REFUSED);
    });

    onOne('for a call with an Idempotency-Key the rule applies from when its answer was returned again', async () => {
      const after = { endpoints: ['/items/search'], within: '45m' };
      await organisation.guardrails([{ ...NOTHING_LEAVES, endpoints: ['/items'], after }]);
      const search = () =>
        agent.act({ ...WRITE, method: 'PATCH', endpoint: '/items/search' }, { 'idempotency-key': 'k1' });
      expect((await search()).status).toBe(200);
      isOver();
      expect((await write()).status).toBe(200);
      expect((await withoutCalls(world, search)).status).toBe(200);
      expect(await became(write())).toBe(REFUSED);
    });

    onOne('a streamed call is noted again as long as its answer is read, and not afterwards', async () => {
      const { broker } = world.running;
      const { whileRead } = earlierCalls(broker, 20);
      const { id } = await broker.store.db
        .selectFrom('agents')
        .select('id')
        .where('agent_id', '=', agent.agentId)
        .executeTakeFirstOrThrow();
      const facts = { agent: { id, organisationId: organisation.id } } as Facts;
      const stop = whileRead(facts, { platformId: '', scope: '', call: { kinds: ['k'] } as never }, randomUUID());
      const madeAt = async () => (await marks())[0]?.made_at;
      await expect.poll(madeAt).toEqual(expect.any(Number));
      world.clock.skewMs += HOUR_MS;
      await expect.poll(madeAt).toBeGreaterThan(broker.clock() - MINUTE_MS);
      stop();
      await setTimeout(50);
      const last = await madeAt();
      world.clock.skewMs += HOUR_MS;
      await setTimeout(60);
      expect(await madeAt()).toBe(last);
    });
  });

  describe('a body that is still being uploaded when the call is decided', () => {
    const upload = (path: string) => {
      const { hostname, port } = new URL(agent.baseUrl);
      const headers = { authorization: `Bearer ${agent.token()}`, 'content-type': 'application/octet-stream' };
      const request = http.request({ hostname, port, path, method: 'POST', headers, agent: false });
      onTestFinished(() => void request.destroy());
      const answer = once(request, 'response').then(async ([response]) => {
        return { status: response.statusCode as number, text: await text(response) };
      });
      answer.catch(() => {});
      return { request, answer };
    };
    /** Longer than what is read before a call is decided. */
    const LONG = Buffer.alloc(1_200_000, 'a');
    const areUnderWay = (calls: number) =>
      expect.poll(() => world.running.services.budget.underWay(Number.POSITIVE_INFINITY).length).toBe(calls);
    beforeEach(() => areUnderWay(0));
    /** Complete requests only. */
    const arrived = () => world.upstream.seen.filter(({ method }) => method === 'POST').map(({ body }) => body.length);

    test('is sent completely when nothing happened meanwhile', async () => {
      await organisation.guardrails([NOTHING_LEAVES]);
      const before = arrived();
      const { request, answer } = upload('/proxy/demo-main/items');
      request.write(LONG);
      await areUnderWay(1);
      request.end('the end');
      expect((await answer).status).toBe(200);
      expect(arrived()).toEqual([...before, LONG.length + 7]);
    });

    onOne.each([['deny'], ['require_approval']])(
      'is not completed when its agent made the other call meanwhile (%s): the platform has no complete request',
      async (effect) => {
        await organisation.guardrails([{ ...NOTHING_LEAVES, effect }]);
        const before = arrived();
        const { request, answer } = upload('/proxy/demo-main/items');
        request.write(LONG);
        await areUnderWay(1);
        const cause = await read();
        request.end('what was read');
        const { status, text } = await answer;
        expect([status, text]).toEqual([403, expect.stringContaining('denied_by_guardrail')]);
        expect(text).toContain(cause);
        expect(arrived()).toEqual(before);
      },
    );
  });

  test('marks belong to their organisation, and are deleted once no rule can look back at them', async () => {
    await organisation.guardrails([NOTHING_LEAVES]);
    await read();
    await purgeCallMarks(world.db, NOW - HOUR_MS);
    expect(await marks()).toHaveLength(1);
    await purgeCallMarks(world.db, NOW + HOUR_MS);
    expect(await marks()).toEqual([]);
  });

  onOne('look-back rules can be in a governance file, a plan describes them, and errors name the mistake', async () => {
    const yaml = `guardrails:
  - name: nothing-leaves
    effect: deny
    scopes: ["demo:write"]
    after: { scopes: ["demo:read"], endpoints: ["/items/strange"], within: 8h }
`;
    const planned = await expectStatus(200, organisation.ask('POST', '/owner/governance/plan', { text: yaml }));
    expect(JSON.stringify(planned.body.changes)).toContain('for 8h after /items/strange with demo:read');
    expect((await organisation.ask('POST', '/owner/governance/apply', { text: yaml })).status).toBe(200);
    const { text } = (await organisation.ask('GET', '/owner/governance')).body;
    expect((await organisation.ask('POST', '/owner/governance/plan', { text })).body.changes).toEqual([]);
    await read();
    expect(await became(write())).toBe(REFUSED);
    const wrongs = [
      ['within: 8h', 'within: soon', 'after.within'],
      ['within: 8h', 'within: 31d', 'at most'],
      ['scopes: ["demo:read"], endpoints: ["/items/strange"], ', '', 'says no calls'],
      ['"demo:read"', '"demo:reed"', 'there is no scope'],
    ] as const;
    for (const [from, to, said] of wrongs)
      expect(
        (await organisation.ask('POST', '/owner/governance/plan', { text: yaml.replace(from, to) })).text,
      ).toContain(said);
  });
});

test.skipIf(STORES.length < 2)('a read at one replica counts at another', async () => {
  const { startWorld } = await import('../world/world.ts');
  const world = await startWorld('postgres');
  const organisation = await world.demoOrganisation({ guardrails: [NOTHING_LEAVES] });
  const agent = await organisation.agent({ rules: ALLOW_ALL });
  const there = await startReplica(world);
  onTestFinished(() => void there.process.signal('SIGKILL'));
  const other = there.asks(agent);
  for (const by of [agent, other]) expect((await by.act({ ...WRITE, data: {} })).status).toBe(200);
  expect((await other.act(STRANGE)).status).toBe(200);
  for (const by of [agent, other]) expect((await by.act({ ...WRITE, data: {} })).body.reason).toBe(REFUSED);
});
