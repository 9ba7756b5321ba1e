/** The broker suspends agents with too many refused calls, where their organisation has set such a rule (specification, AgentHalt). */
import { beforeAll, describe, expect, test } from 'vitest';
import { moveAgent, putGrant } from '../../broker/store/agents.ts';
import { forgetRefusals } from '../../broker/store/refusal-counts.ts';
import type { Db } from '../../broker/store/store.ts';
import { type Answer, expectStatus, makeKeyPair, signToken, type TestAgent } from '../world/agent.ts';

import { childOf, issue } from '../world/child.ts';
import { auditIdOf, evidenceOf, expectEnvelope, verifyReceipt, withoutCalls } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { type Replica, startReplica } from '../world/replica.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, READ, shared, startWorld } from '../world/world.ts';

const UNKNOWN = { ...READ, scope: 'demo:nothing' };
const RULE = { refusals: 4, within_seconds: 60 };

describe.each(ONE_STORE)(`automatic suspension on %s${postgresNote}`, (store) => {
  let policy: string;
  let second: Replica | undefined;
  const world = givenWorld(store);
  const organisation = shared(() =>
    world.organisation({
      guardrails: [{ name: 'tripwire', effect: 'deny', endpoints: ['/items/9'] }],
    }),
  );
  beforeAll(async () => {
    await organisation.platform();
    await organisation.platform({ id: 'off' });
    policy = await organisation.policy([
      { effect: 'allow', methods: ['GET', 'PATCH'] },
      { effect: 'require_approval', methods: ['POST'] },
    ]);
    expect((await organisation.ask('POST', '/owner/organisation', { auto_suspend: RULE })).status).toBe(200);
    if (store === 'postgres') second = await startReplica(world);
  });

  const newAgent = () => organisation.agent({ name: `a-${Math.random()}`, policy });
  const refuse = async (agent: TestAgent, times: number, action: Record<string, unknown> = UNKNOWN) => {
    const reasons = new Set<string>();
    for (let i = 0; i < times; i++) {
      const answer = await expectStatus(
        403,
        withoutCalls(world, () => agent.act(action)),
      );
      reasons.add(answer.body.reason);
    }
    return [...reasons];
  };
  const expectAtWork = async (agent: TestAgent) => expect((await agent.act(READ)).status).toBe(200);
  const expectSuspended = async (agent: TestAgent): Promise<Answer> => {
    const answer = await withoutCalls(world, () => agent.act(READ));
    expect([answer.status, answer.body.error, answer.body.reason], answer.text).toEqual([
      403,
      'agent_halted',
      'agent_suspended',
    ]);
    expect(answer.body.halt).toEqual({
      state: 'suspended',
      since: expect.stringMatching(/^\d{4}-.*Z$/),
      cause: 'anomaly_auto_suspend',
      detail: expect.stringMatching(
        /^\d+ refused calls within 60 s, those of its children included; the last for \w+ on demo( by agt_\w+)?$/,
      ),
      recoverable_by: 'owner',
      retry_after_seconds: null,
      instructions: expect.stringContaining('ask the owner'),
    });
    return answer;
  };
  /** Expects a child of a suspended agent to be refused: the child has no halt of its own. */
  const expectStopped = async (child: TestAgent) => {
    const { status, body, text } = await withoutCalls(world, () => child.act(READ));
    expect([status, body.error, body.reason, body.halt], text).toEqual([
      403,
      'Permission denied',
      'agent_suspended',
      undefined,
    ]);
  };
  const counts = async (agent: TestAgent) =>
    await world.db.selectFrom('refusal_counts').selectAll().where('agent_id', '=', agent.id).execute();
  const eventsOf = async (agent: TestAgent) =>
    (await organisation.ask('GET', `/owner/audit?agent=${agent.agentId}&reason=agent_suspended&kind=event`)).body.rows;
  const resume = async (agent: TestAgent) =>
    expect((await organisation.ask('POST', `/owner/agents/${agent.id}/resume`, {})).status).toBe(200);

  test.runIf(store === 'postgres')('a refusal from before an owner’s resume does not suspend again', async () => {
    const agent = await newAgent();
    await refuse(agent, RULE.refusals - 1);
    const place = { organisationId: organisation.id, id: agent.id };
    const moved = (db: Db, from: 'active' | 'suspended', to: 'active' | 'suspended') =>
      moveAgent(db, place, { from: [from], to, cause: null, detail: null }, Date.now());
    const answer = await withLockContention(
      world,
      async (db) => (await moved(db, 'active', 'suspended')) && (await moved(db, 'suspended', 'active')),
      () => agent.act(UNKNOWN),
      // The refusal was counted, and waits for the row to suspend the agent.
      { waiters: 1, last: (db) => forgetRefusals(db, organisation.id, agent.id) },
    );
    expect(answer.body.reason).toBe('scope_not_granted');
    await expectAtWork(agent);
    expect(await eventsOf(agent)).toEqual([]);
  });

  test('one refusal too many suspends; every entry point reports it, it is recorded, and after an owner’s resume the count starts at 0', async () => {
    const agent = await newAgent();
    await refuse(agent, RULE.refusals - 1);
    await expectAtWork(agent);
    const last = await agent.act(UNKNOWN);
    expect([last.status, last.body.reason, last.body.halt], 'the last one is refused for what it is').toEqual([
      403,
      'scope_not_granted',
      undefined,
    ]);
    const answer = await expectSuspended(agent);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'denied', reason: 'agent_suspended' });
    const me = await agent.get('/v1/agents/me');
    expect(me.body).toMatchObject({ agent_status: 'suspended', halt: answer.body.halt });
    expect((await agent.get('/v1/agent/permissions')).body.halt).toEqual(answer.body.halt);
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    expect(agents.find(({ id }: { id: string }) => id === agent.id)).toMatchObject({
      status: 'suspended',
      status_cause: 'anomaly_auto_suspend',
    });
    const [event, ...more] = await eventsOf(agent);
    expect(more).toEqual([]);
    const receipt = await organisation.ask('GET', `/v1/audit/${event.id}/receipt`);
    const { payload } = await verifyReceipt(world, receipt.body.receipt);
    expect(payload).toMatchObject({ kind: 'event', reason: 'agent_suspended', agent: agent.agentId });
    expect(payload.change).toEqual({
      by: 'broker',
      how: 'broker',
      cause: 'anomaly_auto_suspend',
      call: auditIdOf(last),
    });

    await resume(agent);
    await expectAtWork(agent);
    expect((await agent.get('/v1/agents/me')).body).not.toHaveProperty('halt');
    await refuse(agent, RULE.refusals - 1);
    await expectAtWork(agent);
    await refuse(agent, 1);
    await expectSuspended(agent);
  });

  test('refusals before the window do not count', async () => {
    const agent = await newAgent();
    await refuse(agent, RULE.refusals - 1);
    world.clock.skewMs = 61_000;
    await refuse(agent, RULE.refusals - 1);
    await expectAtWork(agent);
    await refuse(agent, 1);
    await expectSuspended(agent);
  });

  test.each([
    ['a scope that is not granted', UNKNOWN, 'scope_not_granted'],
    ['a platform without a grant', { ...READ, platform: 'demo2' }, 'no_permission_record'],
    ['an endpoint of another scope', { ...READ, method: 'PATCH', endpoint: '/items/1' }, 'endpoint_scope_mismatch'],
    ['a guardrail', { ...READ, endpoint: '/items/9' }, 'denied_by_guardrail'],
    [
      'a missing allow rule',
      { ...READ, method: 'DELETE', endpoint: '/items/1', scope: 'demo:delete' },
      'denied_by_policy',
    ],
  ])('counts calls refused because of %s', async (_what, action, reason) => {
    const agent = await newAgent();
    expect(await refuse(agent, RULE.refusals, action)).toEqual([reason]);
    expect((await agent.act(READ)).body.halt.cause).toBe('anomaly_auto_suspend');
  });

  test('counts refused recipients and refused repositories', async () => {
    const scopes = { 'mail:send': ['POST /mail'] };
    await organisation.platform({ id: 'mail', manifest: { scopes, recipients: { 'POST /mail': ['/to'] } } });
    const agent = await organisation.agent({
      name: 'mailer',
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { mail: { scopeList: ['mail:send'], constraints: '{"recipients":["@acme.example"]}' }, demo: {} },
    });
    const mail = {
      platform: 'mail',
      endpoint: '/mail',
      method: 'POST',
      scope: 'mail:send',
      data: { to: 'x@evil.example' },
    };
    expect(await refuse(agent, RULE.refusals, mail)).toEqual(['recipient_not_allowed']);
    expect((await agent.act(READ)).body.halt.cause).toBe('anomaly_auto_suspend');
  });

  test('DOS-01 requests of strangers do not count, nor do calls that are allowed, held, malformed, or refused because of an owner’s action', async () => {
    const agent = await newAgent();
    const stranger = makeKeyPair();
    for (let i = 0; i < 2 * RULE.refusals; i++) {
      const iat = Math.floor(Date.now() / 1000);
      const claims = { agent_id: agent.agentId, owner_id: agent.ownerId, iat, exp: iat + 60, jti: `${i}` };
      const authorization = `Bearer ${signToken(claims, stranger.privateKey)}`;
      expect(await agent.act(UNKNOWN, { authorization }, '127.0.0.3')).toMatchObject({
        status: 401,
        body: { error: 'invalid_signature' },
      });
      await expectAtWork(agent);
      expect(await agent.act({ ...READ, endpoint: '//x' })).toMatchObject({
        status: 400,
        body: { error: 'invalid_endpoint' },
      });
      expect((await agent.act({ ...READ, method: 'POST', scope: 'demo:write', data: {} })).status).toBe(202);
    }
    await organisation.ask('POST', '/owner/platforms/off/suspend', {});
    await putGrant(world.db, {
      ...(await grantOf(agent)),
      id: crypto.randomUUID(),
      platform_id: 'off',
    });
    expect(await refuse(agent, 2 * RULE.refusals, { ...READ, platform: 'off' })).toEqual(['platform_suspended']);
    await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {});
    expect(await refuse(agent, 2 * RULE.refusals)).toEqual(['agent_suspended']);
    await resume(agent);
    expect(await counts(agent), 'nothing was written for any of it').toEqual([]);
    await expectAtWork(agent);
    await world.forgive();
  });

  const grantOf = async (agent: TestAgent) =>
    await world.db.selectFrom('grants').selectAll().where('agent_id', '=', agent.id).executeTakeFirstOrThrow();

  test('unrelated agents are counted separately', async () => {
    const [one, other] = [await newAgent(), await newAgent()];
    await refuse(one, RULE.refusals - 1);
    await refuse(other, RULE.refusals - 1);
    await expectAtWork(one);
    await expectAtWork(other);
  });

  test('an agent and its children are counted together, and the agent is suspended, which stops them all', async () => {
    const parent = await newAgent();
    const children = await Promise.all(Array.from({ length: 5 }, () => childOf(world, organisation, parent)));
    for (const child of children.slice(0, RULE.refusals - 1)) await refuse(child, 1);
    await expectAtWork(parent);
    for (const child of children) await expectAtWork(child);
    const [last, silent] = children.slice(RULE.refusals - 1);
    const answer = await last!.act(UNKNOWN);
    expect([answer.status, answer.body.reason], 'the last one is refused for what it is').toEqual([
      403,
      'scope_not_granted',
    ]);
    for (const child of children) await expectStopped(child);
    const { halt } = (await expectSuspended(parent)).body;
    expect(halt.detail).toBe(
      `4 refused calls within 60 s, those of its children included; the last for scope_not_granted on demo by ${last!.agentId}`,
    );
    expect(await issue(parent), 'it makes no more of them').toMatchObject({
      status: 403,
      body: { error: 'agent_not_active' },
    });
    const [event, ...more] = await eventsOf(parent);
    expect(more).toEqual([]);
    const receipt = await organisation.ask('GET', `/v1/audit/${event.id}/receipt`);
    expect((await verifyReceipt(world, receipt.body.receipt)).payload.change).toEqual({
      by: 'broker',
      how: 'broker',
      cause: 'anomaly_auto_suspend',
      call: auditIdOf(answer),
      child: last!.agentId,
    });
    for (const child of children) {
      expect(await eventsOf(child), 'a child’s own status stays what it was').toEqual([]);
      expect(await counts(child)).toEqual([]);
    }
    await refuse(silent!, 2 * RULE.refusals, { ...UNKNOWN, platform: 'nowhere' });
    expect((await counts(parent))[0]!.refusals, 'while the parent is stopped nothing counts').toBe(RULE.refusals);

    await resume(parent);
    for (const child of children) await expectAtWork(child);
    await refuse(silent!, RULE.refusals - 1);
    await expectAtWork(silent!);
  });

  test('one misbehaving child suspends its parent, and the parent’s own refusals add to its children’s', async () => {
    const parent = await newAgent();
    const child = await childOf(world, organisation, parent);
    await refuse(child, RULE.refusals);
    await expectStopped(child);
    await expectSuspended(parent);
    await resume(parent);
    await refuse(child, RULE.refusals - 1);
    await expectAtWork(parent);
    await refuse(parent, 1);
    await expectSuspended(parent);
    await expectStopped(child);
  });

  test('refusals of a child still count after its end: a new child continues the count', async () => {
    const parent = await newAgent();
    const [revoked, over] = [
      await childOf(world, organisation, parent),
      await childOf(world, organisation, parent, { ttl_seconds: 20 }),
    ];
    await refuse(revoked, 1);
    expect((await organisation.ask('POST', `/owner/agents/${revoked.id}/revoke`, {})).status).toBe(200);
    await refuse(over, RULE.refusals - 2);
    world.clock.skewMs = 21_000;
    expect((await over.act(READ)).body.reason).toBe('agent_revoked');
    const next = await childOf(world, organisation, parent);
    await expectAtWork(next);
    await refuse(next, 1);
    await expectStopped(next);
    await expectSuspended(parent);
  });

  test('of concurrent refusals in a family one suspends the root, recorded once', async () => {
    const parent = await newAgent();
    const children = await Promise.all(Array.from({ length: 5 }, () => childOf(world, organisation, parent)));
    const all = [parent, ...children];
    const answers = await Promise.all(all.flatMap((agent) => Array.from({ length: 5 }, () => agent.act(UNKNOWN))));
    for (const { status, body } of answers) {
      expect(status).toBe(403);
      expect(body.reason).toBeOneOf(['scope_not_granted', 'agent_suspended']);
    }
    await expectSuspended(parent);
    expect(await eventsOf(parent)).toHaveLength(1);
    for (const child of children) expect(await eventsOf(child)).toEqual([]);
  });

  test('of concurrent refusals one suspends, recorded once', async () => {
    const agent = await newAgent();
    const answers = await Promise.all(Array.from({ length: 30 }, () => agent.act(UNKNOWN)));
    for (const { status, body } of answers) {
      expect(status).toBe(403);
      expect(body.reason).toBeOneOf(['scope_not_granted', 'agent_suspended']);
    }
    await expectSuspended(agent);
    expect(await eventsOf(agent)).toHaveLength(1);
  });

  test('an approved call that is refused at its replay does not count', async () => {
    const agent = await newAgent();
    await refuse(agent, RULE.refusals - 1);
    const held = await expectStatus(202, agent.act({ ...READ, method: 'POST', scope: 'demo:write', data: {} }));
    await organisation.ask('POST', `/owner/agents/${agent.id}/grants/demo`, { scopes: ['demo:read'] });
    const id = held.body.approval_id;
    expect((await organisation.approve(id)).status).toBe(200);
    const answer = await agent.get(`/v1/approvals/${id}?wait=10`);
    expect(answer.body.execution_error).toContain('scope');
    await expectAtWork(agent);
  });

  test.runIf(store === 'postgres')(
    'refusals at all replicas count together, and all replicas stop the agent',
    async () => {
      const here = await newAgent();
      const there = second!.asks(here);
      for (let i = 0; i < RULE.refusals; i++) await refuse(i % 2 ? here : there, 1);
      await expectSuspended(here);
      await expectSuspended(there);
      await resume(here);
      await expectAtWork(there);
    },
  );

  test('without a rule nothing is counted, and nothing is suspended; only admins can set a rule', async () => {
    const other = await world.organisation();
    await other.platform();
    const agent = await other.agent({ rules: ALLOW_ALL });
    expect((await other.ask('GET', '/owner/organisation')).body.auto_suspend).toBeNull();
    await refuse(agent, 10);
    expect(await counts(agent)).toEqual([]);
    await expectAtWork(agent);
    const path = '/owner/organisation';
    const by = await other.addOwner('approver');
    expectEnvelope(await other.ask('POST', path, { auto_suspend: RULE }, by), 403, 'forbidden');
    for (const wrong of [
      { refusals: 2, within_seconds: 60 },
      { refusals: 4, within_seconds: 9 },
      { refusals: 4 },
      { refusals: 4.5, within_seconds: 60 },
      { ...RULE, more: 1 },
      false,
      'x',
    ])
      expectEnvelope(await other.ask('POST', path, { auto_suspend: wrong }), 400, 'invalid_request');
    expect((await other.ask('POST', path, { auto_suspend: RULE })).body.auto_suspend).toEqual(RULE);
    await refuse(agent, 1);
    expect(await counts(agent)).toHaveLength(1);
    expect((await other.ask('POST', path, { approval_ttl_seconds: 600 })).body.auto_suspend).toEqual(RULE);
    expect((await other.ask('POST', path, { auto_suspend: null })).body.auto_suspend).toBeNull();
    await refuse(agent, 10);
    await expectAtWork(agent);
    const { rows } = (await other.ask('GET', '/owner/audit?reason=organisation_changed')).body;
    expect(rows.map((row: { flags: { change: unknown } }) => row.flags.change)).toMatchObject([
      { auto_suspend: null },
      { approval_ttl_seconds: 600 },
      { auto_suspend: RULE },
    ]);
  });

  test('governance.yaml can set it, leave it unchanged, and remove it', async () => {
    const other = await world.organisation();
    const apply = async (text: string) => {
      const answer = await expectStatus(200, other.ask('POST', '/owner/governance/apply', { text, values: {} }));
      return answer.body.changes;
    };
    const rule = async () => (await other.ask('GET', '/owner/organisation')).body.auto_suspend;
    const stated = 'auto_suspend: { within_seconds: 600, refusals: 100 }';
    expect(await apply(stated)).toContainEqual(expect.objectContaining({ action: 'update', kind: 'organisation' }));
    expect(await rule()).toEqual({ refusals: 100, within_seconds: 600 });
    expect(await apply(stated)).toEqual([]);
    expect(await apply('publish_identity_documents: false')).toEqual([]);
    const { body } = await other.ask('GET', '/owner/governance');
    expect(JSON.stringify(body)).toContain('auto_suspend');
    expect(await apply('auto_suspend: false')).toHaveLength(1);
    expect(await rule()).toBeNull();
  });
});

describe.each(ONE_STORE)(`a guardrail that suspends on %s${postgresNote}`, (store) => {
  test('suspends once, recorded, and an owner can resume', async () => {
    const world = await startWorld(store);
    const organisation = await world.organisation({
      guardrails: [{ name: 'tripwire', effect: 'suspend', endpoints: ['/items/9'] }],
    });
    await organisation.platform();
    const agent = await organisation.agent({ rules: ALLOW_ALL });
    const tripped = await Promise.all(Array.from({ length: 5 }, () => agent.act({ ...READ, endpoint: '/items/9' })));
    for (const { status, body } of tripped) {
      expect(status).toBe(403);
      expect(body.reason).toBeOneOf(['denied_by_guardrail', 'agent_suspended']);
    }
    const answer = await withoutCalls(world, () => agent.act(READ));
    expect(answer.body.halt).toMatchObject({
      state: 'suspended',
      cause: 'suspended_by_policy',
      detail: 'guardrail tripwire',
      recoverable_by: 'owner',
      retry_after_seconds: null,
    });
    const { rows } = (
      await organisation.ask('GET', `/owner/audit?agent=${agent.agentId}&reason=agent_suspended&kind=event`)
    ).body;
    expect(rows).toHaveLength(1);
    const { payload } = await verifyReceipt(
      world,
      (await organisation.ask('GET', `/v1/audit/${rows[0].id}/receipt`)).body.receipt,
    );
    expect(payload.change).toMatchObject({ by: 'broker', how: 'broker', cause: 'suspended_by_policy' });
    await organisation.ask('POST', `/owner/agents/${agent.id}/resume`, {});
    expect((await agent.act(READ)).status).toBe(200);
  });
});
