import { describe, expect, test } from 'vitest';
import { moveAgent } from '../../broker/store/agents.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { expectDenied } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, type Organisation, READ, shared } from '../world/world.ts';

describe.each(ONE_STORE)(`POST /v1/actions answers 403 on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());

  const allowed = (more: Parameters<Organisation['agent']>[0] = {}, rules: readonly unknown[] = ALLOW_ALL) =>
    organisation.policy(rules).then((policy) => organisation.agent({ policy, ...more }));

  const denied = (agent: TestAgent, request: Record<string, unknown>, reason: string) =>
    expectDenied(world, agent, request, reason);

  const passes = (agent: TestAgent, request: Record<string, unknown> = READ) => expectStatus(200, agent.act(request));

  test.each(['demo:read ', 'DEMO:READ', 'demo:*', 'demo:read,demo:write', 'dеmo:read', 'demo:delete', '__proto__'])(
    'PA-19 scope_not_granted: %j',
    async (scope) => {
      const agent = await allowed({ grants: { demo: { scopeList: ['demo:read'] } } });
      const answer = await denied(agent, { ...READ, scope }, 'scope_not_granted');
      expect(answer.body._meta.next_actions[0]).toEqual({
        capability: 'access_requests.create',
        endpoint: '/v1/access-request',
      });
      await passes(agent);
    },
  );

  test.each(['nowhere', '*', '__proto__', 'constructor', '../demo', 'DEMO', 'demo ', 'démo'])(
    'PA-20 no_permission_record: platform %j',
    async (platform) => {
      const agent = await allowed();
      await denied(agent, { ...READ, platform }, 'no_permission_record');
      await passes(agent);
    },
  );

  test('no_permission_record: a platform of the organisation, without a grant; a connection without one', async () => {
    await organisation.platform({ id: 'ungranted' });
    const agent = await allowed();
    await denied(agent, { ...READ, platform: 'ungranted' }, 'no_permission_record');
    const connection_id = await organisation.connection('demo', { isDefault: false });
    await denied(agent, { ...READ, connection_id }, 'no_permission_record');
    await denied(agent, { ...READ, connection_id: crypto.randomUUID() }, 'no_permission_record');
  });

  test('a platform, a connection and an agent of another organisation are treated as unknown', async () => {
    const other = await world.organisation();
    await other.platform({ id: 'theirs' });
    const connection_id = await other.connection('theirs', { isDefault: false });
    const agent = await allowed();
    const nowhere = await denied(agent, { ...READ, platform: 'nowhere' }, 'no_permission_record');
    const theirs = await denied(agent, { ...READ, platform: 'theirs' }, 'no_permission_record');
    expect(theirs.body.detail.replace('theirs', 'nowhere')).toBe(nowhere.body.detail);
    await denied(agent, { ...READ, connection_id }, 'no_permission_record');
  });

  test('agent_suspended: a suspended agent is refused every call until it is resumed', async () => {
    const agent = await allowed();
    await passes(agent);
    const suspended = await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, { reason: 'odd calls' });
    expect(suspended.status).toBe(200);
    const answer = await denied(agent, READ, 'agent_suspended');
    expect(answer.body.halt).toEqual({
      state: 'suspended',
      since: suspended.body.status_since,
      cause: 'owner_manual',
      detail: 'odd calls',
      recoverable_by: 'owner',
      retry_after_seconds: null,
      instructions: expect.stringContaining('owner'),
    });
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(answer.body._meta.next_actions[0].endpoint).toBe('/v1/agents/me');
    await denied(agent, { ...READ, scope: 'nothing', platform: 'nowhere' }, 'agent_suspended');
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    await passes(agent);
  });

  test('agent_revoked: for an agent revoked by an owner, and for an expired one', async () => {
    const agent = await allowed();
    await passes(agent);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
    const answer = await denied(agent, READ, 'agent_revoked');
    expect(answer.body.halt).toMatchObject({ state: 'revoked', cause: 'owner_manual', recoverable_by: 'owner' });
    const mortal = await allowed({ agent: { expires_at: Date.now() + 60_000 } });
    await passes(mortal);
    world.clock.skewMs = 61_000;
    expect((await denied(mortal, READ, 'agent_revoked')).body.halt.state).toBe('revoked');
  });

  test('platform_suspended: calls to a platform that the organisation switched off are refused', async () => {
    await organisation.platform({ id: 'switched' });
    const agent = await allowed({ grants: { switched: { scopeList: ['demo:read'] } } });
    const call = { ...READ, platform: 'switched' };
    await passes(agent, call);
    const flip = (suspended: 0 | 1) =>
      world.db.updateTable('platforms').set({ suspended }).where('platform_id', '=', 'switched').execute();
    await flip(1);
    const answer = await denied(agent, call, 'platform_suspended');
    expect(answer.body).not.toHaveProperty('halt');
    await flip(0);
    await passes(agent, call);
  });

  test('no_policy_assigned: an agent without a policy is refused', async () => {
    await denied(await organisation.agent({ policy: null }), READ, 'no_policy_assigned');
  });

  test('denied_by_policy: by a rule, by the absence of a matching rule, and by a condition that fails', async () => {
    const rules = [
      { effect: 'allow', scopes: ['demo:read'] },
      { name: 'no secrets', effect: 'deny', endpoints: ['/items/secret'] },
      { effect: 'allow', scopes: ['demo:write'], when: 'request.body.amount < 10' },
    ];
    const agent = await allowed({}, rules);
    const byRule = await denied(agent, { ...READ, endpoint: '/items/secret' }, 'denied_by_policy');
    expect(byRule.body.detail).toContain('no secrets');
    await denied(agent, { ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' }, 'denied_by_policy');
    const write = { ...READ, method: 'POST', scope: 'demo:write' };
    await denied(agent, { ...write, data: { amount: 10 } }, 'denied_by_policy');
    const failed = await denied(agent, { ...write, data: {} }, 'denied_by_policy');
    expect(failed.body.detail).toContain('amount');
    await passes(agent);
    await passes(agent, { ...write, data: { amount: 9 } });
  });

  test('denied_by_guardrail: overrides any policy; a guardrail with suspend also halts the agent', async () => {
    const guarded = await world.organisation({
      guardrails: [
        { name: 'no deletes', effect: 'deny', methods: ['DELETE'] },
        { name: 'tripwire', effect: 'suspend', endpoints: ['/items/honey'] },
      ],
    });
    await guarded.platform();
    const agent = await guarded.agent({ rules: ALLOW_ALL });
    await passes(agent);
    const answer = await denied(
      agent,
      { ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' },
      'denied_by_guardrail',
    );
    expect(answer.body.detail).toContain('no deletes');
    await passes(agent);
    await denied(agent, { ...READ, endpoint: '/items/honey' }, 'denied_by_guardrail');
    const halted = await denied(agent, READ, 'agent_suspended');
    expect(halted.body.halt).toMatchObject({ cause: 'suspended_by_policy', detail: 'guardrail tripwire' });
  });

  test('grant_expired: a grant is refused from the exact time of its expiry', async () => {
    const agent = await allowed({ grants: { demo: { expires_at: Date.now() + 60_000 } } });
    await passes(agent);
    world.clock.skewMs = 61_000;
    const answer = await denied(agent, READ, 'grant_expired');
    expect(answer.body).not.toHaveProperty('halt');
  });

  test('MR-04 a change in the store takes effect at the next call', async () => {
    const agent = await allowed();
    const { broker } = world.running;
    const place = { organisationId: organisation.id, id: agent.id };
    for (let round = 0; round < 5; round++) {
      await passes(agent);
      const to = { from: ['active'], to: 'suspended', cause: 'owner_manual', detail: null } as const;
      expect(await moveAgent(broker.store.db, place, to, broker.clock())).toBe(true);
      await denied(agent, READ, 'agent_suspended');
      const back = { from: ['suspended'], to: 'active', cause: null, detail: null } as const;
      await moveAgent(broker.store.db, place, back, broker.clock());
    }
  });
});
