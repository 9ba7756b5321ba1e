import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { endPendingItems } from '../../broker/store/end-pending-items.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, fresh, givenWorld, type Organisation, READ, shared } from '../world/world.ts';

const WRITE = {
  platform: 'demo',
  endpoint: '/items',
  method: 'POST',
  scope: 'demo:write',
  data: { to: 'a@acme.example' },
};

describe.each(ONE_STORE)(`POST /owner/simulate on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() =>
    world.demoOrganisation({
      manifest: { recipients: { 'POST /items': ['/to'] }, bodies: { 'PATCH /items/*': ['json', 'bytes'] } },
    }),
  );
  const agent = fresh(() => organisation.agent());

  const ask = (body: Record<string, unknown>, by?: Parameters<Organisation['ask']>[3]) =>
    organisation.ask('POST', '/owner/simulate', { agent_id: agent.agentId, ...body }, by);

  /** The content of the whole store, table by table, without what the broker writes by itself, such as the request counts that replicas share. */
  async function everything(): Promise<Record<string, string>> {
    const { db, dialect } = world.running.broker.store;
    const tables = await db.introspection.getTables();
    const found: Record<string, string> = {};
    for (const { name } of tables.filter(
      (table) => !/^(instances|leases|meta|rate_counts|activity_\w+|log_\w+|receipt_logs)$/.test(table.name),
    )) {
      const { rows } = await sql`select * from ${sql.table(name)} order by 1, 2`.execute(db);
      found[name] = JSON.stringify(rows);
    }
    expect(Object.keys(found).length, dialect).toBeGreaterThan(15);
    return found;
  }

  test('counts a standing approval as the call would, and uses none of it', async () => {
    const id = await agent.hold(WRITE);
    const standing = { count: 1, for_seconds: 600 };
    expect((await organisation.approve(id, { standing })).status).toBe(200);
    const allowed = await withoutCalls(world, () => ask(WRITE));
    expect(allowed.body).toMatchObject({ decision: 'allow', detail: expect.stringContaining('a standing approval') });
    const other = await ask({ ...WRITE, data: { to: 'b@acme.example' } });
    expect(other.body).toMatchObject({ decision: 'require_approval' });
    // It was given under the rules in force.
    const rules = [{ effect: 'require_approval', scopes: ['demo:write'] }];
    expect((await ask({ ...WRITE, policy_rules: rules })).body).toMatchObject({ decision: 'require_approval' });
    expect((await agent.act(WRITE)).status).toBe(200);
    expect((await ask(WRITE)).body).toMatchObject({ decision: 'require_approval' });
    expect((await agent.act(WRITE)).status).toBe(202);
  });

  test('says why a call would not be made: no connection, or a restored store that nobody has reviewed', async () => {
    expect((await ask(READ)).body).not.toHaveProperty('prevented');
    const bare = await world.organisation();
    await bare.platform({ id: 'bare', manifest: { scopes: { 'bare:read': ['GET /items'] } }, secret: null });
    const lone = await bare.agent({ grants: { bare: { scopeList: ['bare:read'] } } });
    const call = { platform: 'bare', endpoint: '/items', method: 'GET', scope: 'bare:read' };
    const lacking = await bare.ask('POST', '/owner/simulate', { agent_id: lone.agentId, ...call });
    expect(lacking.body).toMatchObject({
      decision: 'allow',
      prevented: { error: 'platform_not_connected', detail: expect.stringContaining('Connect bare') },
    });
    expect((await lone.act(call)).body).toMatchObject({ error: 'platform_not_connected' });
    const now = Date.now();
    await world.db
      .transaction()
      .execute((tx) => endPendingItems(tx, { now, nothingSince: false, madeAt: now - 3_600_000 }));
    const unreviewed = await ask(READ);
    expect(unreviewed.body).toMatchObject({ decision: 'allow', prevented: { error: 'store_restored' } });
    expect((await agent.act(READ)).body).toMatchObject({ error: 'store_restored' });
    await world.db.updateTable('organisations').set({ restored: null }).execute();
  });

  test('returns the result of a call with its reason, and writes and sends nothing', async () => {
    const before = await everything();
    const answer = await expectStatus(
      200,
      withoutCalls(world, () => ask(READ)),
    );
    expect(answer.body).toEqual({
      decision: 'allow',
      reason: 'approved',
      detail: 'every check passed',
      scope: 'demo:read',
      matched: [{ source: 'policy', name: 'rule 1', effect: 'allow' }],
      evaluated: [
        'status',
        'grant',
        'ttl',
        'breaker',
        'child_liveness',
        'guardrails',
        'policy',
        'scope',
        'endpoint',
        'recipient_constraints',
        'reach',
      ],
      not_evaluated: [],
      policy: { id: expect.any(String), name: expect.any(String), version: 1 },
      guardrails: { version: 0 },
      warnings: [],
    });
    const held = await withoutCalls(world, () => ask(WRITE));
    expect(held.body).toMatchObject({ decision: 'require_approval', reason: 'approval_required_by_policy' });
    const denied = await withoutCalls(world, () => ask({ ...READ, scope: 'demo:none' }));
    expect(denied.body).toMatchObject({
      decision: 'deny',
      reason: 'scope_not_granted',
      not_evaluated: expect.arrayContaining(['endpoint']),
    });
    const suspended = await ask({ ...READ, guardrails: [{ name: 'stop', effect: 'suspend' }] });
    expect(suspended.body).toMatchObject({ decision: 'deny', reason: 'denied_by_guardrail', suspends: 'stop' });
    expectEnvelope(await ask({ ...READ, endpoint: '//x' }), 400, 'invalid_endpoint');
    expect(await everything()).toEqual(before);
    // The agent is unchanged: neither suspended nor with a further strike.
    expect((await agent.act(READ)).status).toBe(200);
    expect(await everything()).not.toEqual(before);
  });

  /** Calls of every kind; POST /v1/actions must answer each as simulated. */
  const CALLS: [string, Record<string, unknown>][] = [
    ['a read', READ],
    ['a read of one', { ...READ, endpoint: '/items/1?x=1' }],
    ['a write', WRITE],
    ['a change', { ...WRITE, method: 'PATCH' }],
    ['a scope that is not granted', { ...READ, scope: 'demo:admin' }],
    ['an endpoint of another scope', { ...READ, endpoint: '/admin' }],
    ['a method of another scope', { ...READ, method: 'DELETE', endpoint: '/items/1' }],
    ['a platform that is none', { ...READ, platform: 'none' }],
    ['all platforms', { ...READ, platform: '*' }],
    ['a recipient', { ...WRITE, data: { to: 'eve@evil.example' } }],
    ['headers', { ...READ, headers: { accept: 'text/plain' } }],
    ['an endpoint out of form', { ...READ, endpoint: '/items/../x' }],
    ['a header that is none', { ...READ, headers: { 'a b': 'c' } }],
    ['data on a GET', { ...READ, data: {} }],
  ];
  const STATES: [string, (who: TestAgent) => Promise<unknown>][] = [
    ['as it is', async () => {}],
    ['suspended', (who) => organisation.ask('POST', `/owner/agents/${who.id}/suspend`, {})],
    ['revoked', (who) => organisation.ask('POST', `/owner/agents/${who.id}/revoke`, {})],
    [
      'limited in recipients',
      (who) =>
        world.db
          .updateTable('grants')
          .set({ constraints: JSON.stringify({ recipients: ['@acme.example'] }) })
          .where('agent_id', '=', who.id)
          .execute(),
    ],
    [
      'with a grant that is over',
      (who) => world.db.updateTable('grants').set({ expires_at: 1 }).where('agent_id', '=', who.id).execute(),
    ],
    [
      'without a policy',
      (who) => world.db.updateTable('agents').set({ policy_id: null }).where('id', '=', who.id).execute(),
    ],
  ];
  test.each(STATES)('matches the answer of POST /v1/actions for an agent %s', async (_state, bring) => {
    await bring(agent);
    const decisions = new Set<string>();
    for (const [what, call] of CALLS) {
      const foretold = await ask(call);
      const real = await agent.act(call);
      const { decision, reason } = foretold.body;
      if (foretold.status === 400) {
        expect([what, real.status, real.body.error]).toEqual([what, 400, foretold.body.error]);
        continue;
      }
      decisions.add(decision);
      const expected = { allow: 200, require_approval: 202, deny: 403 }[decision as 'allow'];
      expect([what, real.status], `${foretold.text} ${real.text}`).toEqual([what, expected]);
      if (decision === 'deny')
        expect([what, real.body.reason, real.body.violating]).toEqual([what, reason, foretold.body.violating]);
      await world.forgive();
    }
    expect([...decisions]).toContain('deny');
  });

  test('infers the scope of a call that names none, and decides bodies of every kind', async () => {
    const { scope: _, ...unscoped } = WRITE;
    expect((await ask(unscoped)).body).toMatchObject({ decision: 'require_approval', scope: 'demo:write' });
    const none = await organisation.agent({ grants: {} });
    const refused = await ask({ ...unscoped, agent_id: none.id });
    expect(refused.body).toMatchObject({ reason: 'no_permission_record', scope: 'demo:write' });
    expect((await ask({ ...unscoped, endpoint: '/nowhere', agent_id: none.id })).body).toMatchObject({ scope: null });
    const ungranted = await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
    expect(
      (await ask({ ...unscoped, agent_id: ungranted.id, policy_rules: [{ effect: 'allow' }] })).body,
    ).toMatchObject({
      reason: 'scope_not_granted',
      detail: 'the call needs the scope demo:write, which the grant does not include',
    });
    const upload = { ...unscoped, method: 'PATCH', endpoint: '/items/1', data: 'aGVsbG8=', encoding: 'base64' };
    expect((await ask(upload)).body).toMatchObject({ decision: 'allow', scope: 'demo:write' });
    expectEnvelope(await ask({ ...upload, data: '%' }), 400, 'invalid_request');
    expectEnvelope(await ask({ ...upload, data: [] }), 400, 'invalid_request');
  });

  test('evaluates proposed rules, which affect nothing else', async () => {
    const policy_rules = [{ name: 'only writes', effect: 'allow', methods: ['POST'] }];
    expect((await ask({ ...WRITE, policy_rules })).body).toMatchObject({
      decision: 'allow',
      matched: [{ name: 'only writes' }],
      policy: { id: expect.any(String), version: null },
      guardrails: { version: 0 },
    });
    expect((await ask({ ...READ, policy_rules })).body).toMatchObject({ decision: 'deny', reason: 'denied_by_policy' });
    const guardrails = [{ name: 'hold all', effect: 'require_approval' }];
    expect((await ask({ ...READ, guardrails })).body).toMatchObject({
      decision: 'require_approval',
      reason: 'approval_required_by_guardrail',
      guardrails: { version: null },
    });
    expect(
      (await ask({ ...READ, policy_rules: [{ effect: 'deny', platforms: ['demi'] }] })).body.warnings[0],
    ).toContain('policy_rules[0].platforms[0]');
    const bare = await organisation.agent({ policy: null });
    expect((await ask({ ...READ, agent_id: bare.id })).body).toMatchObject({
      reason: 'no_policy_assigned',
      policy: null,
    });
    const proposed = await ask({ ...READ, agent_id: bare.id, policy_rules: DEMO_RULES });
    expect(proposed.body).toMatchObject({ decision: 'allow', policy: { id: null, name: 'proposed', version: null } });
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act(WRITE)).status).toBe(202);
  });

  test('applies the guardrails in force, and the suspension of a platform', async () => {
    const fresh = await world.organisation({ guardrails: [{ name: 'freeze', effect: 'deny', methods: ['DELETE'] }] });
    await fresh.platform();
    const theirs = await fresh.agent();
    const asked = (body: object) => fresh.ask('POST', '/owner/simulate', { agent_id: theirs.id, ...body });
    const remove = { ...READ, method: 'DELETE', endpoint: '/items/1', scope: 'demo:delete' };
    expect((await asked(remove)).body).toMatchObject({ reason: 'denied_by_guardrail', guardrails: { version: 1 } });
    expect((await asked({ ...remove, guardrails: [] })).body).toMatchObject({ decision: 'allow' });
    await fresh.ask('POST', '/owner/platforms/demo/suspend');
    expect((await asked(READ)).body).toMatchObject({ decision: 'deny', reason: 'platform_suspended' });
  });

  test.each<[string, Record<string, unknown>, string, string]>([
    [
      'rules with an unknown member',
      { ...READ, policy_rules: [{ effekt: 'allow' }] },
      'invalid_governance',
      'policy_rules[0].effekt',
    ],
    [
      'rules that do not compile',
      { ...READ, policy_rules: [{ effect: 'allow', when: '(' }] },
      'invalid_governance',
      'policy_rules[0].when',
    ],
    [
      'guardrails that allow',
      { ...READ, guardrails: [{ name: 'x', effect: 'allow' }] },
      'invalid_governance',
      'guardrails[0].effect',
    ],
    ['no method', { ...READ, method: undefined }, 'invalid_request', 'method: is missing'],
    ['no platform', { ...READ, platform: undefined }, 'invalid_request', 'platform: is missing. Platform id.'],
    [
      'a connection by its name',
      { ...READ, connection_id: 'main' },
      'invalid_request',
      'connection_id: must be a UUID.',
    ],
    ['an unknown member', { ...READ, reason: 'x' }, 'invalid_request', 'reason'],
  ])('%s: refused', async (_name, body, code, says) => {
    const answer = await ask(body);
    expectEnvelope(answer, 400, code);
    expect(answer.body.problems.join('\n')).toContain(says);
  });

  test('a viewer may simulate, another organisation may not', async () => {
    const viewer = await organisation.addOwner('viewer');
    expect((await ask(READ, viewer)).status).toBe(200);
    const other = await world.organisation();
    for (const id of [agent.id, agent.agentId, 'x', crypto.randomUUID()]) {
      const answer = await other.ask('POST', '/owner/simulate', { ...READ, agent_id: id });
      expectEnvelope(answer, 404, 'not_found');
    }
    const gone = await organisation.agent({ agent: { status: 'deleted' } });
    expectEnvelope(await ask({ ...READ, agent_id: gone.id }), 404, 'not_found');
  });
});
