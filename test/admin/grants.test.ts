/** Grants through the owner API. */
import { beforeAll, describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';

import { evidenceOf, expectEnvelope } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { startReplica } from '../world/replica.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, type Organisation, READ, shared, startWorld } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { title: 'x' } };
const SEND = { platform: 'mail', endpoint: '/items', method: 'POST', scope: 'demo:write' };

describe.each(ONE_STORE)(`grants by owners on %s${postgresNote}`, (store) => {
  let policy: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    await organisation.platform({ id: 'mail', manifest: { recipients: { 'POST /items': ['/to'] } } });
    policy = await organisation.policy([{ effect: 'allow' }]);
  });

  type Grants = NonNullable<NonNullable<Parameters<Organisation['agent']>[0]>['grants']>;
  const newAgent = (grants: Grants = {}, more: object = {}) => organisation.agent({ policy, grants, ...more });
  const pathOf = (agent: { id: string }, platform = 'demo') => `/owner/agents/${agent.id}/grants/${platform}`;
  const change = (agent: TestAgent, terms: unknown, platform?: string, by?: Parameters<Organisation['ask']>[3]) =>
    organisation.ask('POST', pathOf(agent, platform), terms, by);
  const remove = (agent: TestAgent, query = '', by?: Parameters<Organisation['ask']>[3]) =>
    organisation.ask('DELETE', pathOf(agent) + query, undefined, by);
  const list = async (agent: { id: string }) =>
    (await organisation.ask('GET', `/owner/agents/${agent.id}/grants`)).body.grants;
  const eventsOf = async (agent: TestAgent) =>
    (await organisation.ask('GET', '/owner/audit?limit=200')).body.rows.filter(
      (row: { agent_id: string; kind: string }) => row.agent_id === agent.id && row.kind === 'event',
    );

  test('a change of a grant that somebody else changed, made or removed first is refused, and changes nothing', async () => {
    const agent = await newAgent();
    const made = await expectStatus(201, change(agent, { scopes: ['demo:read', 'demo:write'], version: null }));
    const { version } = made.body.grant;
    const refused = async (body: object, why: string) => {
      const before = await list(agent);
      const answer = await expectStatus(409, change(agent, body));
      expect(answer.body).toMatchObject({ error: 'conflict', detail: expect.stringContaining(why) });
      expect(await list(agent)).toEqual(before);
    };
    await refused({ scopes: ['demo:read'], version: null }, 'The agent has a grant there already');
    // Another owner takes a scope away; a complete list that was read before would give it back.
    const less = await expectStatus(200, change(agent, { scopes: ['demo:read'], version }));
    expect(less.body.grant.version).not.toBe(version);
    await refused({ scopes: ['demo:read', 'demo:write'], require_approval: true, version }, 'changed meanwhile');
    await expectStatus(200, change(agent, { require_approval: true, version: less.body.grant.version }));
    const [{ version: last }] = await list(agent);
    await expectStatus(200, remove(agent));
    await refused({ scopes: ['demo:read'], version: last }, 'removed meanwhile');
  });

  test('grant, change and removal: each in force at the next call, and recorded', async () => {
    const agent = await newAgent();
    expect((await agent.act(READ)).body.reason).toBe('no_permission_record');
    const made = await expectStatus(201, change(agent, { scopes: ['demo:read'] }));
    expect(made.body).toEqual({
      grant: {
        grant_id: expect.any(String),
        platform: 'demo',
        connection: null,
        scopes: ['demo:read'],
        require_approval: false,
        expires_at: null,
        expired: false,
        recipients: null,
        repos: null,
        allow_repo_creation: false,
        refs: null,
        ref_changes: null,
        created_at: expect.stringMatching(/Z$/),
        version: expect.any(String),
      },
      warnings: [],
      next_steps: [],
    });
    expect(await list(agent)).toEqual([made.body.grant]);
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act(WRITE)).body.reason).toBe('scope_not_granted');
    const changed = await change(agent, { scopes: ['demo:write', 'demo:write'] });
    expect([changed.status, changed.body.grant.scopes]).toEqual([200, ['demo:write']]);
    expect(changed.body.grant.grant_id).toBe(made.body.grant.grant_id);
    expect((await agent.act(READ)).body.reason).toBe('scope_not_granted');
    expect((await agent.act(WRITE)).status).toBe(200);
    const removed = await remove(agent);
    expect([removed.status, removed.body.removed]).toEqual([200, [changed.body.grant]]);
    expect((await agent.act(WRITE)).body.reason).toBe('no_permission_record');
    expect(await list(agent)).toEqual([]);
    const [last, second, first] = await eventsOf(agent);
    expect([first.reason, second.reason, last.reason]).toEqual(['grant_changed', 'grant_changed', 'grant_removed']);
    const { payload } = await evidenceOf(world, agent, second.id);
    expect(payload).toMatchObject({
      kind: 'event',
      platform: 'demo',
      change: {
        by: organisation.owner.id,
        how: 'api',
        before: { scopes: ['demo:read'] },
        after: { grant_id: made.body.grant.grant_id, scopes: ['demo:write'] },
      },
    });
    expect((await evidenceOf(world, agent, first.id)).payload.change.before).toBeNull();
    const gone = (await evidenceOf(world, agent, last.id)).payload.change;
    expect([gone.before.length, gone.after]).toEqual([1, null]);
  });

  test('refs and their allowed changes can be limited, shown, changed and freed', async () => {
    const agent = await newAgent();
    const limits = { refs: ['agent/*', 'refs/tags/v*'], ref_changes: ['create', 'update'] };
    const { grant } = (await change(agent, { scopes: ['demo:read', 'demo:write'], ...limits })).body;
    expect(grant).toMatchObject(limits);
    const told = (await agent.get('/v1/agent/permissions')).body.data;
    expect(told.platforms[0].constraints).toEqual(limits);
    expect((await change(agent, { refs: ['agent/x'] })).body.grant).toMatchObject({ ...limits, refs: ['agent/x'] });
    expect((await agent.get('/v1/agent/permissions')).body.data.version).not.toBe(told.version);
    expect((await agent.act(WRITE)).body.reason).toBe('repo_not_allowed');
    expect((await agent.act(READ)).status).toBe(200);
    const freed = (await change(agent, { refs: null, ref_changes: null })).body.grant;
    expect(freed).toMatchObject({ refs: null, ref_changes: null });
    expect((await agent.act(WRITE)).status).toBe(200);
    const refused = await change(agent, { refs: ['refs/notes/x'] });
    expect([refused.status, refused.body.error], refused.text).toEqual([400, 'invalid_request']);
    expect(refused.body.detail).toContain('only branches and tags');
  });

  test('omitted members stay unchanged, null removes a limit, an empty list allows no recipient', async () => {
    const agent = await newAgent();
    const terms = {
      scopes: ['demo:write'],
      expires_in_seconds: 3600,
      require_approval: true,
      recipients: ['@acme.example'],
      repos: ['acme/shop', 'acme/*'],
      allow_repo_creation: true,
    };
    const { grant } = (await change(agent, terms, 'mail')).body;
    expect(grant).toMatchObject({ recipients: terms.recipients, repos: terms.repos, allow_repo_creation: true });
    expect((await change(agent, {}, 'mail')).body.grant).toEqual(grant);
    expect((await change(agent, { require_approval: false }, 'mail')).body.grant).toEqual({
      ...grant,
      require_approval: false,
      version: expect.any(String),
    });
    expect((await change(agent, { expires_in_seconds: null }, 'mail')).body.grant).toMatchObject({
      expires_at: null,
      recipients: terms.recipients,
    });
    const wide = (await change(agent, { repos: null, allow_repo_creation: false }, 'mail')).body.grant;
    expect(wide).toMatchObject({ repos: null, allow_repo_creation: false, recipients: terms.recipients });
    const to = (address: string) => agent.act({ ...SEND, data: { to: address } });
    expect((await to('ann@acme.example')).status).toBe(200);
    expect((await to('eve@evil.example')).body.reason).toBe('recipient_not_allowed');
    await change(agent, { recipients: [] }, 'mail');
    expect((await to('ann@acme.example')).body.reason).toBe('recipient_not_allowed');
    expect((await change(agent, { recipients: null }, 'mail')).body.grant.recipients).toBeNull();
    expect((await to('eve@evil.example')).status).toBe(200);
  });

  test('recipients are in the audit row, and in no receipt', async () => {
    const agent = await newAgent();
    await change(agent, { scopes: ['demo:write'], recipients: ['ann@acme.example', 'bob@acme.example'] }, 'mail');
    const [event] = await eventsOf(agent);
    const { payload } = await evidenceOf(world, agent, event.id);
    expect(payload.change.after.recipients).toBe(2);
    expect(JSON.stringify(payload)).not.toContain('@');
    const row = await findAuditRow(world.db, organisation.id, event.id);
    expect(row?.detail).toBe('recipients: ann@acme.example, bob@acme.example');
  });

  test('scopes that are denied for the same reason are one step', async () => {
    const nothing = await organisation.policy([{ effect: 'deny' }]);
    const agent = await newAgent({}, { policy: nothing });
    const { next_steps: steps } = (await change(agent, { scopes: ['demo:read', 'demo:write'] })).body;
    expect(steps).toEqual([
      { reason: 'denied_by_policy', detail: expect.stringMatching(/^demo:read, demo:write: .*\.$/) },
    ]);
  });

  test('an expiry counts from now; expired grants are marked', async () => {
    const agent = await newAgent();
    const began = Date.now();
    const { grant } = (await change(agent, { scopes: ['demo:read'], expires_in_seconds: 3600 })).body;
    expect(Date.parse(grant.expires_at) - began).toBeGreaterThanOrEqual(3_600_000);
    expect((await agent.act(READ)).status).toBe(200);
    world.clock.skewMs = 2 * 3_600_000;
    expect((await agent.act(READ)).body.reason).toBe('grant_expired');
    const [shown] = await list(agent);
    expect(shown).toEqual({ ...grant, expired: true });
    const changed = (await change(agent, { require_approval: true })).body;
    expect(changed.next_steps).toEqual([{ reason: 'grant_expired', detail: expect.stringContaining('expired') }]);
    expect((await change(agent, { expires_in_seconds: 60, require_approval: false })).body.next_steps).toEqual([]);
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('the text of an expiry from a governance file is dropped when the expiry changes', async () => {
    const agent = await newAgent({ demo: { expires_at: Date.now() + 1_000_000, expires_text: '30d' } });
    const textOf = async () =>
      (
        await world.db
          .selectFrom('grants')
          .select('expires_text')
          .where('agent_id', '=', agent.id)
          .executeTakeFirstOrThrow()
      ).expires_text;
    await change(agent, { scopes: ['demo:read'] });
    expect(await textOf()).toBe('30d');
    await change(agent, { expires_in_seconds: 3600 });
    expect(await textOf()).toBeNull();
  });

  test('each connection has a grant of its own, selected by its label', async () => {
    const id = await organisation.connection('demo', { isDefault: false });
    const name = `demo-${id.slice(0, 8)}`;
    const agent = await newAgent();
    await change(agent, { scopes: ['demo:read'] });
    const { grant } = (await change(agent, { scopes: ['demo:write'], connection: name })).body;
    expect(grant.connection).toEqual({ connection_id: id, label: name });
    expect(await list(agent)).toHaveLength(2);
    expect((await agent.act(WRITE)).body.reason).toBe('scope_not_granted');
    expect((await agent.act({ ...WRITE, connection_id: id })).status).toBe(200);
    // Naming the default connection selects the grant without a connection.
    expect((await change(agent, { require_approval: true, connection: 'demo-main' })).body.grant).toMatchObject({
      connection: null,
      scopes: ['demo:read'],
    });
    expect((await remove(agent, `?connection=${name}`)).body.removed).toEqual([grant]);
    expect(await list(agent)).toHaveLength(1);
    await change(agent, { scopes: ['demo:write'], connection: name });
    expect((await remove(agent, '?connection=demo-main')).body.removed).toMatchObject([{ connection: null }]);
    await change(agent, { scopes: ['demo:read'], connection: 'demo-main' });
    expect((await remove(agent)).body.removed).toHaveLength(2);
    expectEnvelope(await remove(agent), 404, 'not_found');
    expectEnvelope(await remove(agent, '?connection=mail-main'), 400, 'invalid_request');
    expectEnvelope(await remove(agent, '?connection=%00'), 400, 'invalid_request');
  });

  test.each<[string, unknown, RegExp]>([
    ['a body that is not an object', [], /object/],
    ['an unknown member', { scopes: ['demo:read'], expires: '30d' }, /expires/],
    ['a new grant without scopes', { require_approval: true }, /^scopes: a new grant needs some/],
    ['no scope at all', { scopes: [] }, /^scopes: names no scope/],
    ['a scope that the platform does not have', { scopes: ['demo:raed'] }, /Did you mean "demo:read"\?/],
    ['a scope pattern', { scopes: ['demo:*'] }, /patterns are for policies/],
    ['an invalid repository', { scopes: ['demo:read'], repos: ['acme'] }, /^repos\.0: is no repository/],
    ['65 repositories', { scopes: ['demo:read'], repos: Array(65).fill('acme/shop') }, /more than 64/],
    ['an expiry below the minimum', { scopes: ['demo:read'], expires_in_seconds: 1 }, /^expires_in_seconds/],
    ['an expiry as text', { scopes: ['demo:read'], expires_in_seconds: '30d' }, /^expires_in_seconds/],
    ['an unknown connection', { scopes: ['demo:read'], connection: 'nowhere' }, /^connection: there is no connection/],
    [
      'a connection of another platform',
      { scopes: ['demo:read'], connection: 'mail-main' },
      /^connection: .* is one to "mail"/,
    ],
    ['scopes that are null', { scopes: null }, /^scopes/],
    ['NUL in a recipient', { scopes: ['demo:read'], recipients: ['a\0@acme.example'] }, /0000/],
  ])('400: %s, and nothing is granted', async (_what, terms, detail) => {
    const agent = await newAgent();
    const answer = await change(agent, terms);
    expectEnvelope(answer, 400, 'invalid_request');
    expect(answer.body.detail).toMatch(detail);
    expect(await list(agent)).toEqual([]);
    expect(await eventsOf(agent)).toEqual([]);
  });

  test('recipients are validated by the platform’s kinds of recipients', async () => {
    const agent = await newAgent();
    const answer = await change(agent, { scopes: ['demo:write'], recipients: ['C024BE91L'] }, 'mail');
    expectEnvelope(answer, 400, 'invalid_request');
    expect(answer.body.detail).toMatch(/^recipients\.0: is no e-mail address/);
    for (const [platform, entry] of [
      ['mail', '*@acme.example'],
      ['demo', '*'],
    ] as const) {
      const pattern = await change(agent, { scopes: ['demo:write'], recipients: [entry] }, platform);
      expectEnvelope(pattern, 400, 'invalid_request');
      expect(pattern.body.detail).toMatch(
        /^recipients\.0: is no recipient; write .*"@acme\.example" for everybody there/,
      );
    }
    const idle = await change(agent, { scopes: ['demo:write'], recipients: ['@acme.example'] });
    expect(idle.body.warnings).toEqual([expect.stringMatching(/^recipients: limits nothing/)]);
  });

  test('repositories on a platform without any are answered with a warning', async () => {
    await organisation.platform({ id: 'notes', manifest: { scopes: { 'notes:read': ['GET /notes'] } } });
    const { body } = await change(await newAgent(), { scopes: ['notes:read'], repos: ['acme/*'] }, 'notes');
    expect(body.warnings).toContainEqual(expect.stringMatching(/^repos: refuses every call: no operation of "notes"/));
  });

  test('404: agents of other organisations, unknown agents and platforms', async () => {
    const other = await world.organisation();
    await other.platform();
    const theirs = await other.agent();
    const deleted = await newAgent({}, { agent: { status: 'deleted' } });
    const terms = { scopes: ['demo:read'] };
    for (const id of [theirs.id, theirs.agentId, deleted.id, crypto.randomUUID(), 'x', '%00']) {
      expectEnvelope(await organisation.ask('GET', `/owner/agents/${id}/grants`), 404, 'not_found');
      expectEnvelope(await organisation.ask('POST', pathOf({ id }), terms), 404, 'not_found');
      expectEnvelope(await organisation.ask('DELETE', pathOf({ id })), 404, 'not_found');
    }
    const agent = await newAgent();
    for (const platform of ['nowhere', '*', 'DEMO', '%00', '..%2f'])
      for (const method of ['POST', 'DELETE'])
        expectEnvelope(
          await organisation.ask(method, pathOf(agent, platform), method === 'POST' ? terms : undefined),
          404,
          'not_found',
        );
    expect((await theirs.act(READ)).status).toBe(200);
  });

  test('by either id of the agent; a revoked agent cannot be granted anything', async () => {
    const agent = await newAgent();
    const path = `/owner/agents/${agent.agentId}/grants/demo`;
    expect((await organisation.ask('POST', path, { scopes: ['demo:read'] })).status).toBe(201);
    await organisation.ask('POST', `/owner/agents/${agent.id}/revoke`, {});
    expectEnvelope(await change(agent, { scopes: ['demo:write'] }), 409, 'conflict');
    expect((await list(agent))[0].scopes).toEqual(['demo:read']);
    expect((await remove(agent)).status).toBe(200);
  });

  test('viewers and approvers read, admins change', async () => {
    const agent = await newAgent({ demo: {} });
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      expect((await organisation.ask('GET', `/owner/agents/${agent.id}/grants`, undefined, owner)).status).toBe(200);
      expectEnvelope(await change(agent, { scopes: ['demo:read'] }, 'demo', owner), 403, 'forbidden');
      expectEnvelope(await remove(agent, '', owner), 403, 'forbidden');
    }
    expectEnvelope(await agent.get(`/owner/agents/${agent.id}/grants`), 401, 'invalid_token');
    expect(await list(agent)).toHaveLength(1);
  });

  test('of concurrent changes none is lost, and one grant is created', async () => {
    const agent = await newAgent();
    const terms = [
      { require_approval: true },
      { repos: ['acme/shop'] },
      { recipients: ['@acme.example'] },
      { expires_in_seconds: 3600 },
      { allow_repo_creation: true },
    ].map((one) => ({ scopes: ['demo:read'], ...one }));
    const answers = await Promise.all([...terms, ...terms, ...terms].map((one) => change(agent, one)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(14).fill(200), 201]);
    expect(await list(agent)).toEqual([
      expect.objectContaining({
        require_approval: true,
        repos: ['acme/shop'],
        recipients: ['@acme.example'],
        expires_at: expect.any(String),
        allow_repo_creation: true,
      }),
    ]);
    expect(await eventsOf(agent)).toHaveLength(15);
    const removals = await Promise.all(Array.from({ length: 5 }, () => remove(agent)));
    expect(removals.map(({ status }) => status).sort()).toEqual([200, 404, 404, 404, 404]);
    expect(await eventsOf(agent)).toHaveLength(16);
  });

  test('a change that cannot be recorded is not made', async () => {
    const agent = await newAgent({ demo: { scopeList: ['demo:read'] } });
    const before = await list(agent);
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await change(agent, { scopes: ['demo:write'] }), 503, 'audit_unavailable');
      expectEnvelope(await remove(agent), 503, 'audit_unavailable');
    });
    expect(await list(agent)).toEqual(before);
  });

  test('a governance file exports it, and applying a file without it removes it; the answer warns about that', async () => {
    const own = await world.organisation();
    await own.platform();
    const agent = await own.agent({
      name: 'filed',
      policy: await own.policy([{ effect: 'allow' }], 'all'),
      grants: {},
    });
    const text = async () => (await own.ask('GET', '/owner/governance')).body.text as string;
    const without = await text();
    const grant = () => own.ask('POST', pathOf(agent), { scopes: ['demo:read'], expires_in_seconds: 3600 });
    expect((await grant()).body.next_steps).toEqual([]);
    const withIt = await text();
    expect(withIt).toMatch(/demo:read/);
    const apply = async (file: string) => {
      const answer = await expectStatus(200, own.ask('POST', '/owner/governance/apply', { text: file }));
      return answer.body.changes.filter((one: { kind: string }) => one.kind === 'grant');
    };
    expect(await apply(withIt)).toEqual([]);
    expect((await agent.act(READ)).status).toBe(200);
    // From now on the file manages the agent.
    expect((await grant()).body.next_steps).toEqual([
      { reason: 'governance_file', detail: expect.stringContaining('apply') },
    ]);
    expect(await apply(without)).toMatchObject([{ action: 'delete', kind: 'grant' }]);
    expect((await agent.act(READ)).body.reason).toBe('no_permission_record');
  });
});

describe.runIf(STORES.includes('postgres'))(`grants by owners and replicas on postgres${postgresNote}`, () => {
  test('a change at one replica is in force at the next call of the other', async () => {
    const world = await startWorld('postgres');
    const organisation = await world.organisation();
    await organisation.platform();
    const replica = await startReplica(world);
    const here = await organisation.agent({ rules: ALLOW_ALL, grants: {} });
    const there = replica.asks(here);
    const path = `/owner/agents/${here.id}/grants/demo`;
    for (let round = 0; round < sized(3, 10); round++) {
      expect((await there.act(READ)).body.reason).toBe('no_permission_record');
      expect((await organisation.ask('POST', path, { scopes: ['demo:read'] })).status).toBe(201);
      expect((await there.act(READ)).status).toBe(200);
      await organisation.ask('POST', path, { scopes: ['demo:write'] });
      expect((await there.act(READ)).body.reason).toBe('scope_not_granted');
      await organisation.ask('DELETE', path);
    }
  });
});
