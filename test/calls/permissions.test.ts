import { describe, expect, test } from 'vitest';
import { BUILTIN_PLATFORMS } from '../../broker/platforms/builtin.ts';
import { listGrants, putGrant } from '../../broker/store/agents.ts';
import { putGuardrails, putPlatform, putPolicy } from '../../broker/store/governed-versions.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { expectReportHint } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { CANARY, DEMO_SCOPES, givenWorld, READ, shared } from '../world/world.ts';

const PATH = '/v1/agent/permissions';

describe.each(STORES)(`GET /v1/agent/permissions on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { name: 'Demo' } }));

  const platformsOf = async (agent: TestAgent) => (await agent.get(PATH)).body.data.platforms;

  test('has the complete documented form', async () => {
    const agent = await organisation.agent();
    const answer = await expectStatus(200, agent.get(PATH));
    const { data, _meta } = answer.body;
    expect(data.agent).toEqual({ id: agent.id, name: 'triage', agent_id: agent.agentId });
    expect(data.version).toMatch(/^[\w-]{43}$/);
    expect(answer.headers.get('etag')).toBe(`"${data.version}"`);
    expect(data.egress).toEqual({ hosts: [world.upstream.address] });
    expect(_meta).toMatchObject({ capability: 'permissions.read', next_actions: [] });
    expect(new URL(_meta.docs).hash).toBe('#permissions.read');
    expect(data.platforms).toEqual([
      {
        platformId: 'demo',
        platformName: 'Demo',
        scopes: ['demo:delete', 'demo:read', 'demo:write'],
        requireApproval: false,
        conditionalScopes: ['demo:write'],
        connections: [
          {
            connection_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
            label: 'demo-main',
            status: 'active',
            default: true,
            scopes: ['demo:delete', 'demo:read', 'demo:write'],
            requireApproval: false,
            conditionalScopes: ['demo:write'],
          },
        ],
        baseUrl: `${world.upstream.url}/v1`,
      },
    ]);
    expect(answer.headers.get('ratelimit')).toMatch(/^"permissions";/);
    expect(answer.text).not.toContain(CANARY);
  });

  test('names every host that calls are sent to: of each base URL, and of git', async () => {
    const several = await world.organisation();
    await several.platform({ manifest: { base_urls: { 'GET /items/*': 'https://files.acme.example:8443/v2' } } });
    await several.platform({ id: 'codehost', manifest: BUILTIN_PLATFORMS.github });
    const agent = await several.agent({ grants: { demo: {}, codehost: { scopeList: ['codehost:contents.read'] } } });
    const { egress } = (await agent.get(PATH)).body.data;
    const github = ['api.github.com', 'github.com', 'uploads.github.com'];
    expect(egress).toEqual({ hosts: [world.upstream.address, 'files.acme.example:8443', ...github].sort() });
  });

  test('is the grant without what policy and guardrails deny, with held and conditional scopes', async () => {
    const guarded = await world.organisation({
      guardrails: [{ name: 'no deletes', effect: 'deny', scopes: ['demo:delete'] }],
    });
    await guarded.platform();
    const policy = await guarded.policy([
      { effect: 'allow', scopes: ['demo:read', 'demo:delete', 'demo:none'] },
      { effect: 'require_approval', scopes: ['demo:write'] },
      { effect: 'deny', scopes: ['demo:read'], when: 'request.query.size() > 3' },
    ]);
    const expires_at = Date.now() + 600_000;
    const scopeList = [...Object.keys(DEMO_SCOPES), 'demo:none'];
    const constraints = { recipients: ['@acme.example'] };
    const agent = await guarded.agent({
      policy,
      grants: { demo: { scopeList, expires_at, constraints: JSON.stringify(constraints) } },
    });
    const [platform] = await platformsOf(agent);
    const { connections, expiresInSeconds, ...rest } = platform;
    expect(rest).toEqual({
      platformId: 'demo',
      platformName: 'demo',
      scopes: ['demo:none', 'demo:read', 'demo:write'],
      requireApproval: false,
      approvalScopes: ['demo:write'],
      conditionalScopes: ['demo:read'],
      unenforcedScopes: ['demo:none'],
      constraints,
      baseUrl: `${world.upstream.url}/v1`,
    });
    const { connection_id: _id, label: _label, status, default: isDefault, ...granted } = connections[0];
    const { platformId: _platform, platformName: _name, baseUrl: _address, ...whole } = rest;
    expect([status, isDefault]).toEqual(['active', true]);
    expect(granted).toEqual({ ...whole, expiresInSeconds });
    expect(expiresInSeconds).toBeGreaterThan(590);
    expect(expiresInSeconds).toBeLessThanOrEqual(600);
  });

  test('has the addresses of single operations, such as uploads, for a proxy that serves the hosts of a platform', async () => {
    const several = await world.organisation();
    for (const id of ['slack', 'stripe'] as const) await several.platform({ id, manifest: BUILTIN_PLATFORMS[id] });
    const agent = await several.agent({ grants: { slack: {}, stripe: {} } });
    const { platforms } = (await agent.get(PATH)).body.data;
    expect(platforms.map((one: Record<string, unknown>) => [one.baseUrl, one.otherBaseUrls])).toEqual([
      ['https://slack.com/api', ['https://files.slack.com']],
      ['https://api.stripe.com', undefined],
    ]);
  });

  test('has the error format of each platform, for clients that refuse a call before sending it', async () => {
    for (const id of ['slack', 'stripe'] as const) await organisation.platform({ id, manifest: BUILTIN_PLATFORMS[id] });
    const platforms: Record<string, unknown>[] = await platformsOf(
      await organisation.agent({ grants: { demo: {}, slack: {}, stripe: {} } }),
    );
    expect(platforms.map((one) => [one.platformId, one.errorBody, one.errorStatus])).toEqual([
      ['demo', undefined, undefined],
      ['slack', { ok: false, error: '{detail}' }, 200],
      ['stripe', BUILTIN_PLATFORMS.stripe.error_body, undefined],
    ]);
  });

  test('says when every call under a grant needs approval', async () => {
    const [platform] = await platformsOf(await organisation.agent({ grants: { demo: { require_approval: 1 } } }));
    expect(platform.requireApproval).toBe(true);
    expect(platform.connections[0].requireApproval).toBe(true);
  });

  test('omits what cannot be used: other platforms, expired grants, a platform that is switched off', async () => {
    for (const id of ['a-graph', 'off', 'ungranted'])
      await organisation.platform({
        id,
        manifest: id === 'a-graph' ? { kind: 'graphql', scopes: { 'demo:read': ['query *'] } } : {},
      });
    await world.db.updateTable('platforms').set({ suspended: 1 }).where('platform_id', '=', 'off').execute();
    const agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { off: {}, demo: { expires_at: Date.now() + 60_000 }, 'a-graph': { scopeList: ['demo:read'] } },
    });
    const shown = await platformsOf(agent);
    expect(shown.map((p: { platformId: string }) => p.platformId)).toEqual(['a-graph', 'demo']);
    expect(shown[0].callStyle).toBe('graphql');
    world.clock.skewMs = 61_000;
    expect((await platformsOf(agent)).map((p: { platformId: string }) => p.platformId)).toEqual(['a-graph']);
  });

  test('is empty for an agent without a policy, or without a grant', async () => {
    expect(await platformsOf(await organisation.agent({ policy: null }))).toEqual([]);
    expect(await platformsOf(await organisation.agent({ grants: {} }))).toEqual([]);
  });

  test.each<[string, (version: string) => string]>([
    ['quoted', (version) => `"${version}"`],
    ['unquoted', (version) => version],
    ['weak', (version) => `W/"${version}"`],
    ['in a list', (version) => `"other", W/"${version}" ,"more"`],
    ['any', () => '*'],
  ])('If-None-Match, %s: 304 without a body, with the ETag', async (_name, form) => {
    const agent = await organisation.agent();
    const etag = (await agent.get(PATH)).headers.get('etag')!;
    const answer = await agent.get(PATH, { 'if-none-match': form(etag.slice(1, -1)) });
    expect([answer.status, answer.text]).toEqual([304, '']);
    expect(answer.headers.get('etag')).toBe(etag);
    expect(answer.headers.get('ratelimit')).toMatch(/^"permissions";/);
  });

  test.each(['', '"other"', '"', 'W/', '""', '"x", "y"'])(
    'If-None-Match of another version gets the full answer: %j',
    async (value) => {
      const agent = await organisation.agent();
      expect((await agent.get(PATH, { 'if-none-match': value })).status).toBe(200);
    },
  );

  test('the version changes with everything that affects the permissions, and with nothing else', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const policy = await fresh.policy([{ effect: 'allow' }]);
    const agent = await fresh.agent({ policy, grants: { demo: { expires_at: Date.now() + 3_600_000 } } });
    const now = Date.now();
    const seen = new Set<string>();
    const version = async () => (await agent.get(PATH)).body.data.version as string;
    const changed = async (what: string) => {
      const next = await version();
      expect(seen.has(next), `changed by ${what}`).toBe(false);
      seen.add(next);
    };
    await changed('nothing yet');
    const same = await version();
    world.clock.skewMs = 30_000;
    await fresh.agent();
    await agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' });
    await world.db.updateTable('connections').set({ revision: 2 }).where('organisation_id', '=', fresh.id).execute();
    expect(await version()).toBe(same);

    const rules = [{ effect: 'allow' }, { effect: 'require_approval', scopes: ['demo:write'] }];
    await putPolicy(world.db, { organisationId: fresh.id, id: policy, name: 'p', rules: JSON.stringify(rules) }, now);
    await changed('the policy');
    await putGuardrails(
      world.db,
      fresh.id,
      JSON.stringify([{ name: 'g', effect: 'deny', scopes: ['demo:delete'] }]),
      now,
    );
    await changed('a guardrail');
    const [grant] = await listGrants(world.db, fresh.id, agent.id);
    await putGrant(world.db, { ...grant!, scopes: '["demo:read","demo:write"]', require_approval: 1 });
    await changed('the grant');
    await putGrant(world.db, {
      ...grant!,
      scopes: '["demo:read","demo:write"]',
      constraints: '{"recipients":["@a.example"]}',
    });
    await changed('a constraint');
    await fresh.platform({ id: 'second' });
    await putGrant(world.db, { ...grant!, id: crypto.randomUUID(), platform_id: 'second' });
    await changed('another platform');
    const manifest = {
      kind: 'rest',
      base_url: 'https://elsewhere.example',
      auth: { type: 'bearer' },
      scopes: DEMO_SCOPES,
    };
    await putPlatform(
      world.db,
      { organisationId: fresh.id, platformId: 'second', manifest: JSON.stringify(manifest) },
      now,
    );
    await changed('where a platform is');
    world.clock.skewMs = 3_601_000;
    await changed('an expiry');
  });

  test('the version changes with what conditions read of the agent and of its parent', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const rules = [{ effect: 'allow' }, { effect: 'deny', when: '"frozen" in agent.labels' }];
    const agent = await fresh.agent({ rules });
    const child = await childOf(world, fresh, agent);
    const to = await fresh.addOwner('admin');
    const changes: [what: string, path: string, body: unknown, status: number][] = [
      ['labels', `/owner/agents/${agent.agentId}/labels`, { labels: ['frozen'] }, 403],
      ['no labels', `/owner/agents/${agent.agentId}/labels`, { labels: [] }, 200],
      ['the owner', '/owner/hand-over', { from: fresh.owner.id, to: to.id }, 200],
    ];
    const both = [agent, child];
    for (const [what, path, body, status] of changes) {
      const before = await Promise.all(both.map(async (one) => (await one.get(PATH)).headers.get('etag')!));
      await expectStatus(200, fresh.ask('POST', path, body));
      for (const [i, one] of both.entries()) {
        expect((await one.act(READ)).status, what).toBe(status);
        expect((await one.get(PATH, { 'if-none-match': before[i]! })).status, what).toBe(200);
      }
    }
  });

  test('each connection has its own holds, conditions and limits, and the version changes with each of them', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const second = await fresh.connection('demo', { secret: 'a-second-credential', isDefault: false });
    const policy = await fresh.policy([{ effect: 'allow' }]);
    const agent = await fresh.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } });
    const [first] = await listGrants(world.db, fresh.id, agent.id);
    const other = { ...first!, id: crypto.randomUUID(), connection_id: second, scopes: '["demo:write"]' };
    const now = Date.now();
    const seen = new Set<string>();
    const changed = async (what: string) => {
      const answer = await agent.get(PATH, { 'if-none-match': [...seen].map((one) => `"${one}"`).join() });
      expect(answer.status, what).toBe(200);
      seen.add(answer.body.data.version);
      const [platform] = answer.body.data.platforms;
      return { platform, item: platform.connections[1] };
    };
    const putRules = (rules: unknown) =>
      putPolicy(world.db, { organisationId: fresh.id, id: policy, name: 'p', rules: JSON.stringify(rules) }, now);

    await putGrant(world.db, other);
    const { platform, item } = await changed('another grant');
    expect(platform).toMatchObject({ scopes: ['demo:read'] });
    expect(platform).not.toHaveProperty('approvalScopes');
    expect(item).toEqual({
      connection_id: second,
      label: `demo-${second.slice(0, 8)}`,
      status: 'active',
      default: false,
      scopes: ['demo:write'],
      requireApproval: false,
    });

    await putRules([{ effect: 'allow' }, { effect: 'require_approval', scopes: ['demo:write'] }]);
    const held = await changed('a hold of the policy');
    expect(held.item.approvalScopes).toEqual(['demo:write']);
    expect(held.platform).toMatchObject({ scopes: ['demo:read'], approvalScopes: ['demo:write'] });
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} };
    expect((await agent.act({ ...call, connection_id: second })).status).toBe(202);

    const limit = (amount: number) => [
      { effect: 'allow' },
      { effect: 'deny', scopes: ['demo:write'], when: `has(request.body.n) && request.body.n > ${amount}` },
    ];
    await putRules(limit(1000));
    expect((await changed('a condition')).item.conditionalScopes).toEqual(['demo:write']);
    await putRules(limit(10));
    await changed('what a condition says');
    await putGuardrails(world.db, fresh.id, JSON.stringify([{ name: 'g', effect: 'deny', methods: ['DELETE'] }]), now);
    await changed('a guardrail of other calls');
    for (const recipients of [['@acme.example'], ['@other.example']]) {
      await putGrant(world.db, { ...other, constraints: JSON.stringify({ recipients }) });
      expect((await changed(`recipients ${recipients}`)).item.constraints).toEqual({ recipients });
    }
    await putGrant(world.db, { ...other, expires_at: now + 600_000 });
    const ending = await changed('an end');
    expect(ending.item.expiresInSeconds).toBeGreaterThan(590);
    expect(ending.platform).not.toHaveProperty('expiresInSeconds');
    const narrower = {
      kind: 'rest',
      base_url: `${world.upstream.url}/v1`,
      auth: { type: 'bearer' },
      scopes: { ...DEMO_SCOPES, 'demo:read': ['GET /items'] },
    };
    await putPlatform(
      world.db,
      { organisationId: fresh.id, platformId: 'demo', manifest: JSON.stringify(narrower) },
      now,
    );
    await changed('a narrower scope of the manifest');
  });

  test('a connection without a credential, or with a refused one, is reported; without a connection none is named', async () => {
    const fresh = await world.organisation();
    const statuses = async (agent: TestAgent) => {
      const [platform] = await platformsOf(agent);
      return [platform.scopes.length, ...platform.connections.map((one: { status: string }) => one.status)];
    };
    await fresh.platform({ secret: null });
    const agent = await fresh.agent();
    expect(await statuses(agent)).toEqual([3]);
    const unconnected = await fresh.connection('demo', { secret: null });
    expect(await statuses(agent)).toEqual([3, 'not_connected']);
    await world.db.deleteFrom('connections').where('id', '=', unconnected).execute();
    await fresh.connection('demo');
    expect(await statuses(agent)).toEqual([3, 'active']);
    world.upstream.answer = (_request, response) => void response.writeHead(401).end();
    const refused = await agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' });
    world.upstream.answer = undefined;
    expect(refused.body.error).toBe('platform_reauth_needed');
    expect(await statuses(agent)).toEqual([3, 'reauth_needed']);
  });

  test('a grant is listed again when a clock that was ahead is set back to before its expiry', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const agent = await fresh.agent({ grants: { demo: { expires_at: Date.now() + 3_600_000 } } });
    world.clock.skewMs = 7_200_000;
    expect(await platformsOf(agent)).toEqual([]);
    world.clock.skewMs = 0;
    expect((await agent.act(READ)).status).toBe(200);
    expect(await platformsOf(agent)).toMatchObject([{ platformId: 'demo' }]);
  });

  test('a grant on another connection ends at its expiry, which changes the version', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const second = await fresh.connection('demo', { secret: 'a-second-credential', isDefault: false });
    const agent = await fresh.agent();
    const [grant] = await listGrants(world.db, fresh.id, agent.id);
    const expires_at = Date.now() + 60_000;
    await putGrant(world.db, { ...grant!, id: crypto.randomUUID(), connection_id: second, expires_at });
    const connections = ({ body }: Answer): string[] =>
      body.data.platforms[0].connections.map((one: { connection_id: string }) => one.connection_id);
    const before = await agent.get(PATH);
    expect(connections(before)).toHaveLength(2);
    world.clock.skewMs = 61_000;
    const after = await expectStatus(200, agent.get(PATH, { 'if-none-match': before.headers.get('etag')! }));
    expect(connections(after)).toEqual(connections(before).filter((id) => id !== second));
  });

  test('what is listed as usable can be called, and what is not cannot', async () => {
    const policy = await organisation.policy([
      { effect: 'allow', scopes: ['demo:read'] },
      { effect: 'require_approval', scopes: ['demo:write'] },
    ]);
    const agent = await organisation.agent({ policy });
    const [platform] = await platformsOf(agent);
    const calls: Record<string, [string, string]> = {
      'demo:read': ['GET', '/items'],
      'demo:write': ['POST', '/items'],
      'demo:delete': ['DELETE', '/items/1'],
    };
    for (const [scope, [method, endpoint]] of Object.entries(calls)) {
      const { status } = await agent.act({ platform: 'demo', scope, method, endpoint });
      const expected = platform.approvalScopes?.includes(scope) ? 202 : platform.scopes.includes(scope) ? 200 : 403;
      expect([scope, status]).toEqual([scope, expected]);
    }
  });

  test('a halted agent gets 403, and its permissions again when it is resumed', async () => {
    const agent = await organisation.agent();
    const before = await agent.get(PATH);
    await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {});
    const answer = await agent.get(PATH, { 'if-none-match': before.headers.get('etag')! });
    expect([answer.status, answer.body.error, answer.body.reason]).toEqual([403, 'agent_halted', 'agent_suspended']);
    expect(answer.body.halt).toMatchObject({ state: 'suspended', cause: 'owner_manual' });
    expect(answer.body.correlation_id).toBe(answer.headers.get('x-correlation-id'));
    expectReportHint(answer, 'agent_suspended');
    await organisation.ask('POST', `/owner/agents/${agent.id}/resume`, {});
    expect((await agent.get(PATH)).body.data.version).toBe(before.body.data.version);
    await organisation.ask('POST', `/owner/agents/${agent.id}/revoke`, {});
    expect((await agent.get(PATH)).body.reason).toBe('agent_revoked');
  });
});
