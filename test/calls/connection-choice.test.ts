/** Which of an agent's grants on a platform applies when a call names no connection: the same for every entry point. */
import { sql } from 'kysely';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { listGrants } from '../../broker/store/agents.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const SCOPES = { scopeList: ['demo:read', 'demo:write'] };

describe.each(ONE_STORE)(`a call that names no connection on %s${postgresNote}`, (store) => {
  let policy: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ secret: null }));
  const connections: Record<string, string> = {};
  beforeAll(async () => {
    for (const label of ['main', 'two', 'three', 'four']) {
      const isDefault = label === 'main';
      connections[label] = await organisation.connection('demo', { secret: `credential-of-${label}`, isDefault });
      await world.db.updateTable('connections').set({ label }).where('id', '=', connections[label]).execute();
    }
    policy = await organisation.policy([{ effect: 'allow' }]);
  });

  /** An agent with a grant on each of these connections, created in this order. */
  const agentOn = async (...labels: string[]): Promise<TestAgent> => {
    const agent = await organisation.agent({ policy, grants: {} });
    for (const label of labels) {
      const body = { scopes: SCOPES.scopeList, connection: label };
      await expectStatus(201, organisation.ask('POST', `/owner/agents/${agent.id}/grants/demo`, body));
    }
    return agent;
  };
  /** Moves the rows of grants, as updates on PostgreSQL do once the table has statistics. */
  const moveRows = async (agent: TestAgent) => {
    await sql`analyze`.execute(world.db);
    const grants = await listGrants(world.db, organisation.id, agent.id);
    for (const { id } of grants.slice(0, -1)) {
      const one = world.db.updateTable('grants').where('id', '=', id);
      await one.set({ expires_at: Date.now() + 86_400_000 }).execute();
      await one.set({ expires_at: null }).execute();
    }
  };
  const permissionsOf = async (agent: TestAgent) => (await agent.get('/v1/agent/permissions')).body.data;
  const credential = () => world.upstream.seen.at(-1)!.headers.authorization;

  test('uses the grant on the default connection, in any row order', async () => {
    const agent = await agentOn('two', 'main', 'three');
    const before = await permissionsOf(agent);
    for (const step of [() => Promise.resolve(), () => moveRows(agent)]) {
      await step();
      expect((await agent.act(READ)).status).toBe(200);
      expect(credential()).toBe('Bearer credential-of-main');
      expect(await permissionsOf(agent)).toEqual(before);
    }
    expect(before.platforms[0].connections.map((one: { label: string }) => one.label)).toEqual([
      'main',
      'three',
      'two',
    ]);
  });

  test('uses the only grant, if that is on another connection', async () => {
    const agent = await agentOn('two');
    expect((await agent.act(READ)).status).toBe(200);
    expect(credential()).toBe('Bearer credential-of-two');
    expect((await permissionsOf(agent)).platforms[0].connections).toMatchObject([{ label: 'two', default: true }]);
  });

  test('is refused with the connection names when several grants exist and none is on the default, in any row order', async () => {
    const agent = await agentOn('two', 'three', 'four');
    const before = await permissionsOf(agent);
    const calls = world.upstream.seen.length;
    const details = new Set<string>();
    for (const step of [() => Promise.resolve(), () => moveRows(agent)]) {
      await step();
      const refused = await agent.act(READ);
      expect([refused.status, refused.body.error, refused.body.reason]).toEqual([
        403,
        'Permission denied',
        'scope_not_granted',
      ]);
      details.add(refused.body.detail);
      expect((await evidenceOf(world, agent, auditIdOf(refused))).row).toMatchObject({
        result: 'denied',
        connection_id: null,
      });
      expect(await permissionsOf(agent)).toEqual(before);
    }
    expect(world.upstream.seen).toHaveLength(calls);
    expect(details.size).toBe(1);
    for (const label of ['two', 'three', 'four']) expect([...details][0]).toContain(`${label} (${connections[label]})`);
    expect(before.platforms[0].scopes).toEqual([]);
    expect(
      before.platforms[0].connections.map((one: { label: string; default: boolean }) => [one.label, one.default]),
    ).toEqual([
      ['four', false],
      ['three', false],
      ['two', false],
    ]);
    for (const label of ['two', 'three', 'four']) {
      expect((await agent.act({ ...READ, connection_id: connections[label] })).status).toBe(200);
      expect(credential()).toBe(`Bearer credential-of-${label}`);
    }
  });

  test('a call that named its connection and was held is made through that connection', async () => {
    const agent = await agentOn('main', 'two');
    await organisation.guardrails([{ name: 'ask', effect: 'require_approval' }]);
    onTestFinished(async () => void (await organisation.guardrails([])));
    const id = await agent.hold({ ...READ, connection_id: connections.two });
    expect((await organisation.approve(id)).body).toMatchObject({ execution_error: null });
    expect(credential()).toBe('Bearer credential-of-two');
  });

  test('every query route reports the same', async () => {
    const agent = await agentOn('two', 'three');
    const authzen = (context?: object) =>
      agent.post('/v1/authzen/access', {
        subject: { type: 'agent', id: agent.id },
        action: { name: 'demo:read' },
        resource: { type: 'platform', id: 'demo' },
        ...context,
      });
    expect((await authzen()).body).toMatchObject({ decision: false, reason: 'scope_not_granted' });
    const named = { connection_id: connections.two };
    expect((await authzen({ context: named })).body).toMatchObject({ decision: true });
    const trqp = async (context?: object) => {
      const host = new URL(world.running.baseUrl).host.replace(':', '%3A');
      const names = { entity_id: `did:web:${host}:agents:${agent.agentId}`, authority_id: `did:web:${host}` };
      return await agent.post('/v1/trqp/authorization', {
        ...names,
        action: 'demo:read',
        resource: 'demo',
        ...context,
      });
    };
    expect((await trqp()).body).toMatchObject({ authorized: false, message: 'scope_not_granted' });
    expect((await trqp({ context: named })).body.authorized).toBe(true);
    const simulated = (more: object) =>
      organisation.ask('POST', '/owner/simulate', { agent_id: agent.agentId, ...READ, ...more });
    expect((await simulated({})).body).toMatchObject({ decision: 'deny', reason: 'scope_not_granted' });
    expect((await simulated(named)).body.decision).toBe('allow');
  });

  test('an access request answers that only the connection name is missing, and an approval has to name the connection', async () => {
    const agent = await agentOn('two', 'three');
    const ask = (body: object) => agent.post('/v1/access-request', body);
    const held = await ask({ platform: 'demo', scope: 'demo:read' });
    expectEnvelope(held, 409, 'conflict');
    expect(held.body.detail).toMatch(/with connection_id .*\((two|three)\)/);
    const asked = await ask({ platform: 'demo', scope: 'demo:delete' });
    expect([asked.status, asked.body.reason_code]).toEqual([202, 'not_granted']);
    const open = (await organisation.ask('GET', '/owner/access-requests?status=pending')).body.access_requests;
    const { request_id } = open.find((one: { agent: { id: string } }) => one.agent.id === agent.id);
    const approve = (body: object) => organisation.ask('POST', `/owner/access-requests/${request_id}/approve`, body);
    const unclear = await approve({});
    expectEnvelope(unclear, 409, 'conflict');
    expect(unclear.body.detail).toContain('(three, two)');
    const { grant } = (await approve({ connection_id: connections.two })).body;
    expect(grant).toMatchObject({ connection: { label: 'two' }, scopes: [...SCOPES.scopeList, 'demo:delete'] });
    const remove = { ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' };
    expect((await agent.act({ ...remove, connection_id: connections.two })).status).toBe(200);
  });

  test('an owner who names no connection is asked for one, and nothing changes', async () => {
    const agent = await agentOn('two', 'three');
    const path = `/owner/agents/${agent.id}/grants/demo`;
    const before = (await organisation.ask('GET', `/owner/agents/${agent.id}/grants`)).body;
    for (const body of [{ require_approval: true }, { scopes: ['demo:read'] }]) {
      const refused = await organisation.ask('POST', path, body);
      expectEnvelope(refused, 409, 'conflict');
      expect(refused.body.detail).toContain('(three, two)');
    }
    const secret = { agent: agent.id, platform: 'demo', label: 'unclear' };
    expectEnvelope(await organisation.ask('POST', '/owner/secret-authorizations', secret), 409, 'conflict');
    expect((await organisation.ask('GET', `/owner/agents/${agent.id}/grants`)).body).toEqual(before);
    const main = { require_approval: true, scopes: ['demo:read'], connection: 'main' };
    expect((await organisation.ask('POST', path, main)).status).toBe(201);
    // Now there is a grant on the default connection, which applies.
    expect((await agent.act(READ)).status).toBe(202);
  });

  test('a held call that named no connection is not made once several connections are possible', async () => {
    const agent = await agentOn('two');
    const held = await organisation.policy([{ effect: 'require_approval' }]);
    await world.db.updateTable('agents').set({ policy_id: held }).where('id', '=', agent.id).execute();
    const approval_id = await agent.hold(READ);
    const grant = { scopes: SCOPES.scopeList, connection: 'three' };
    expect((await organisation.ask('POST', `/owner/agents/${agent.id}/grants/demo`, grant)).status).toBe(201);
    const calls = world.upstream.seen.length;
    await organisation.approve(approval_id);
    const decided = (await agent.get(`/v1/approvals/${approval_id}?wait=20`)).body;
    expect(decided).toMatchObject({
      status: 'approved',
      execution_error: expect.stringContaining('scope_not_granted'),
    });
    expect(world.upstream.seen).toHaveLength(calls);
  });

  test('a child agent needs a named connection', async () => {
    const agent = await agentOn('two', 'three');
    const issue = (more: object) =>
      agent.post('/v1/agents/children', { grants: [{ platform: 'demo', scopes: ['demo:read'], ...more }] });
    const refused = await issue({});
    expectEnvelope(refused, 400, 'no_scopes_after_attenuation');
    expect(refused.body.detail).toMatch(/^grants\[0\]\.connection_id: /);
    const made = await issue({ connection_id: connections.three });
    expect(made.body.granted[0].connection_id).toBe(connections.three);
  });
});
