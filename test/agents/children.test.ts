/** POST /v1/agents/children: what a parent can pass on (specification, Child identity). */
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import { receiptOf } from '../../broker/audit/receipt.ts';
import { findAgent, listGrants } from '../../broker/store/agents.ts';
import { expectStatus, send, type TestAgent } from '../world/agent.ts';
import { ALL_DEMO, childOf, issue } from '../world/child.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, READ, shared, startWorld } from '../world/world.ts';

describe.each(STORES)(`children on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const parent = shared(() => organisation.agent());
  const grant = (more: Record<string, unknown> = {}) => ({ platform: 'demo', scopes: ['demo:read'], ...more });
  const refused = async (agent: TestAgent, body: unknown, status: number, error: string) => {
    const before = (await listChildren(agent)).length;
    const answer = await issue(agent, body);
    expectEnvelope(answer, status, error);
    expect(await listChildren(agent)).toHaveLength(before);
    return answer;
  };
  const listChildren = (agent: TestAgent) =>
    world.db.selectFrom('agents').selectAll().where('parent_id', '=', agent.id).execute();
  /** Creates an agent with one grant that has these constraints. */
  const limited = (constraints: Record<string, unknown>) =>
    organisation.agent({ grants: { demo: { constraints: JSON.stringify(constraints) } } });

  test('a child is created as requested, its bearer works, and the creation is recorded', async () => {
    const answer = await expectStatus(201, issue(parent, { name: 'worker ✓', ttl_seconds: 600, grants: [grant()] }));
    expect(answer.body).toEqual({
      child_agent_id: expect.stringMatching(/^agt_[a-z0-9]{20}$/),
      bearer_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      expires_at: expect.stringMatching(/Z$/),
      granted: [
        {
          platform: 'demo',
          scopes: ['demo:read'],
          connection_id: null,
          constraints: {},
          require_approval: false,
          expires_at: null,
        },
      ],
    });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const left = Date.parse(answer.body.expires_at) - Date.now();
    expect(left).toBeGreaterThan(595_000);
    expect(left).toBeLessThanOrEqual(601_000);
    const bearer = { authorization: `Bearer ${answer.body.bearer_token}` };
    const me = await send(`${parent.baseUrl}/v1/agents/me`, { headers: bearer });
    expect(me.body).toEqual({
      status: 'approved',
      agent_id: answer.body.child_agent_id,
      did: expect.stringMatching(new RegExp(`:agents:${answer.body.child_agent_id}$`)),
      name: 'worker ✓',
      owner_id: parent.ownerId,
      org_id: organisation.id,
      agent_type: 'child',
      agent_status: 'active',
      parent_agent_id: parent.agentId,
      created_at: expect.any(String),
      expires_at: answer.body.expires_at,
    });
    const row = (await findAgent(world.db, organisation.id, answer.body.child_agent_id))!;
    expect(row).toMatchObject({ parent_id: parent.id, policy_id: null, public_key_pem: null });
    const [event] = (await listAuditRows(world.db, organisation.id, { limit: 5 })).filter(
      (one) => one.kind === 'event',
    );
    expect(event).toMatchObject({ reason: 'child_issued', agent_public_id: answer.body.child_agent_id });
    const { rows } = (await organisation.ask('GET', '/owner/audit?kind=event&limit=5')).body;
    const listed = rows.find(({ id }: { id: string }) => id === event!.id);
    const parentName = (await findAgent(world.db, organisation.id, parent.agentId))!.name;
    expect(listed.agent_names).toEqual({ [row.agent_id]: row.name, [parent.agentId]: parentName });
    const { payload } = await verifyReceipt(world, receiptOf(event!)!);
    expect(payload.change).toEqual({
      by: parent.agentId,
      how: 'agent',
      parent: parent.agentId,
      expires_at: answer.body.expires_at,
      grants: [{ platform: 'demo', scopes: ['demo:read'] }],
    });
    // The token is neither in the store nor in any row.
    expect(JSON.stringify([row, event])).not.toContain(answer.body.bearer_token);
  });

  test('the bearer is a JWT of its own type that can be verified with the published keys', async () => {
    const { body } = await issue(parent, { ttl_seconds: 60, grants: [grant()] });
    const keys = await send(`${parent.baseUrl}/v1/oauth/jwks.json`, {});
    expect(decodeProtectedHeader(body.bearer_token)).toMatchObject({ alg: 'ES256', typ: 'svc-child+jwt' });
    const { payload } = await jwtVerify(body.bearer_token, createLocalJWKSet(keys.body), {
      typ: 'svc-child+jwt',
      issuer: parent.baseUrl,
      audience: parent.baseUrl,
    });
    expect(payload).toMatchObject({
      agent_id: body.child_agent_id,
      owner_id: parent.ownerId,
      parent_agent_id: parent.agentId,
    });
    expect(payload.exp! * 1000).toBe(Date.parse(body.expires_at));
    const receipts = await send(`${parent.baseUrl}/.well-known/svc-receipt-keys.json`, {});
    await expect(jwtVerify(body.bearer_token, createLocalJWKSet(receipts.body))).rejects.toThrow();
  });

  test('without name and ttl it gets a name from its parent’s, and an hour', async () => {
    for (const body of [{}, { name: null, ttl_seconds: null }]) {
      const { body: made } = await expectStatus(201, issue(parent, { grants: [grant()], ...body }));
      const row = await findAgent(world.db, organisation.id, made.child_agent_id);
      expect(row).toMatchObject({ name: 'child of triage' });
      expect(Math.round((row!.expires_at! - row!.created_at) / 1000 / 10)).toBe(360);
    }
  });

  describe('scopes', () => {
    test('CH-01 scopes that the parent does not hold are dropped silently; if none is left, it is a 400', async () => {
      const reader = await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
      const { status, body } = await issue(reader, {
        grants: [grant({ scopes: ['demo:read', 'demo:write', 'demo:x'] })],
      });
      expect([status, body.granted[0].scopes]).toEqual([201, ['demo:read']]);
      await refused(reader, { grants: [grant({ scopes: ['demo:write'] })] }, 400, 'no_scopes_after_attenuation');
    });

    test('CH-01 one platform without a remaining scope refuses the whole request', async () => {
      const answer = await refused(
        parent,
        { grants: [grant(), { platform: 'other', scopes: ['other:read'] }] },
        400,
        'no_scopes_after_attenuation',
      );
      expect(answer.body.detail).toContain('grants[1]');
    });

    test.each([['demo:*'], ['DEMO:READ'], ['demo:read ']])(
      'CH-02 %j is not a scope that the parent holds',
      async (scope) => {
        await refused(parent, { grants: [grant({ scopes: [scope] })] }, 400, 'no_scopes_after_attenuation');
      },
    );

    test('CH-02 a repeated scope counts once', async () => {
      const { body } = await issue(parent, { grants: [grant({ scopes: ['demo:read', 'demo:read'] })] });
      expect(body.granted[0].scopes).toEqual(['demo:read']);
    });

    test.each<[string, unknown]>([
      ['a body without grants', {}],
      ['an empty list', { grants: [] }],
      [
        'CH-03 26 grants',
        { grants: Array.from({ length: 26 }, (_, at) => ({ platform: `p${at}`, scopes: ['demo:read'] })) },
      ],
      ['no platform', { grants: [{ scopes: ['demo:read'] }] }],
      ['no scopes', { grants: [{ platform: 'demo' }] }],
      ['CH-02 an empty list of scopes', { grants: [{ platform: 'demo', scopes: [] }] }],
      ['CH-02 an empty scope', { grants: [{ platform: 'demo', scopes: [''] }] }],
      [
        'CH-02 10,000 scopes',
        { grants: [{ platform: 'demo', scopes: Array.from({ length: 10_000 }, (_, i) => `s${i}`) }] },
      ],
      ['a scope that is not a string', { grants: [{ platform: 'demo', scopes: [1] }] }],
      ['an unknown member', { grants: [{ platform: 'demo', scopes: ['demo:read'], expires: '1d' }] }],
      ['text with U+0000', { grants: [{ platform: 'demo\u0000', scopes: ['demo:read'] }] }],
      [
        'the same platform and connection twice',
        {
          grants: [
            { platform: 'demo', scopes: ['demo:read'] },
            { platform: 'demo', scopes: ['demo:write'] },
          ],
        },
      ],
    ])('an invalid request is refused: %s', async (_what, body) => {
      const answer = await issue(parent, body);
      // For text that no store accepts the whole body is refused.
      expectEnvelope(answer, 400, _what === 'text with U+0000' ? 'invalid_request' : 'invalid_grants');
    });

    test('CH-03 25 grants are accepted', async () => {
      const names = Array.from({ length: 25 }, (_, at) => `p${at}`);
      for (const id of names) await organisation.platform({ id, secret: null });
      const rich = await organisation.agent({ grants: Object.fromEntries(names.map((id) => [id, {}])) });
      const { status, body } = await issue(rich, {
        grants: names.map((platform) => ({ platform, scopes: ['demo:read'] })),
      });
      expect([status, body.granted?.length]).toEqual([201, 25]);
    });

    test('an expired grant of the parent is not passed on; one that expires soon expires for the child, too', async () => {
      const soon = Date.now() + 60_000;
      const passing = await organisation.agent({ grants: { demo: { expires_at: soon, require_approval: 1 } } });
      const { body } = await issue(passing, { grants: [grant()] });
      expect(body.granted[0]).toMatchObject({ expires_at: new Date(soon).toISOString(), require_approval: true });
      world.clock.skewMs = 61_000;
      await refused(passing, { grants: [grant()] }, 400, 'no_scopes_after_attenuation');
    });
  });

  describe('lifetime', () => {
    test.each([0, -1, 1.5, '60', 1e12, 86_401, true])('CH-10 ttl_seconds %j is refused', async (ttl_seconds) => {
      const answer = await refused(parent, { ttl_seconds, grants: [grant()] }, 400, 'invalid_request');
      expect(answer.body.detail).toContain('ttl_seconds');
    });

    test('a child lives at least as long as requested', async () => {
      for (let i = 0; i < 8; i++) {
        const asked = world.running.broker.clock();
        const { body } = await issue(parent, { ttl_seconds: 1, grants: [grant()] });
        const lives = Date.parse(body.expires_at) - asked;
        expect(lives).toBeGreaterThanOrEqual(1_000);
        world.clock.skewMs += 137;
      }
      world.clock.skewMs = 0;
    });

    test('CH-10 a second and a day are accepted, and no child outlives its parent', async () => {
      for (const ttl_seconds of [1, 86_400])
        expect((await issue(parent, { ttl_seconds, grants: [grant()] })).status).toBe(201);
      const expires_at = Math.floor(Date.now() / 1000) * 1000 + 120_000;
      const mortal = await organisation.agent({ agent: { expires_at } });
      const { body } = await issue(mortal, { ttl_seconds: 600, grants: [grant()] });
      expect(Date.parse(body.expires_at)).toBe(expires_at);
    });
  });

  describe('constraints', () => {
    test('CH-05 omitted, {} and null mean the parent’s; an empty list allows nothing', async () => {
      const agent = await limited({ repos: ['acme/*'], recipients: ['@acme.example'] });
      const own = { repos: ['acme/*'], recipients: ['@acme.example'] };
      for (const constraints of [undefined, {}, null]) {
        const { status, body } = await issue(agent, {
          grants: [grant(constraints === undefined ? {} : { constraints })],
        });
        expect([status, body.granted?.[0].constraints]).toEqual([201, own]);
      }
      const { body } = await issue(agent, { grants: [grant({ constraints: { repos: [], recipients: [] } })] });
      expect(body.granted[0].constraints).toEqual({ repos: [], recipients: [] });
    });

    test.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, unknown>]>([
      ['a repository of the owner', { repos: ['acme/*'] }, { repos: ['ACME/Repo'] }, { repos: ['ACME/Repo'] }],
      ['the same owner', { repos: ['acme/*'] }, { repos: ['acme/*'] }, { repos: ['acme/*'] }],
      ['one of two', { repos: ['acme/a', 'acme/b'] }, { repos: ['acme/b'] }, { repos: ['acme/b'] }],
      ['a limit where the parent has none', {}, { repos: ['acme/a'] }, { repos: ['acme/a'] }],
      [
        'an address of the domain',
        { recipients: ['@acme.example'] },
        { recipients: ['ann@acme.example'] },
        { recipients: ['ann@acme.example'] },
      ],
      [
        'repository creation that the parent has',
        { repos: ['acme/*'], allow_repo_creation: true },
        { allow_repo_creation: true },
        { repos: ['acme/*'], allow_repo_creation: true },
      ],
      [
        'repository creation omitted means off',
        { repos: ['acme/*'], allow_repo_creation: true },
        {},
        { repos: ['acme/*'] },
      ],
      ['a branch that matches the pattern', { refs: ['agent/**'] }, { refs: ['agent/x/*'] }, { refs: ['agent/x/*'] }],
      [
        'the same pattern as a full ref',
        { refs: ['agent/*'] },
        { refs: ['refs/heads/agent/*'] },
        { refs: ['refs/heads/agent/*'] },
      ],
      [
        'refs omitted mean the parent’s',
        { refs: ['agent/*'], ref_changes: ['create'] },
        {},
        { refs: ['agent/*'], ref_changes: ['create'] },
      ],
      [
        'fewer changes',
        { ref_changes: ['create', 'update'] },
        { ref_changes: ['update'] },
        { ref_changes: ['update'] },
      ],
      [
        'repository creation switched off',
        { repos: ['acme/*'] },
        { allow_repo_creation: false },
        { repos: ['acme/*'] },
      ],
    ])('CH-04 tighter constraints are accepted: %s', async (_what, own, constraints, granted) => {
      const { status, body, text } = await issue(await limited(own), { grants: [grant({ constraints })] });
      expect([status, body.granted?.[0].constraints], text).toEqual([201, granted]);
    });

    test('a limit of something that the platform does not know is refused, unless the parent has it, too', async () => {
      const forge = await organisation.platform({
        id: 'forge',
        manifest: { recipients: { 'POST /messages': ['/to'] }, refs: { 'POST /messages': [] } },
      });
      for (const [constraints, own, why] of [
        [{ recipients: ['@acme.example'] }, { recipients: ['@acme.example'] }, /recipients: limits nothing/],
        [{ refs: ['agent/*'] }, { refs: ['**'] }, /refs: refuses all that is not a GET or git/],
        [{ ref_changes: [] }, { ref_changes: ['create'] }, /ref_changes: refuses all that is not a GET or git/],
      ] as const) {
        const { body } = await refused(parent, { grants: [grant({ constraints })] }, 400, 'invalid_constraints');
        expect(body.detail).toMatch(why);
        expect(body.detail).toContain('grants[0].constraints.');
        const known = await organisation.agent({ grants: { [forge]: { scopeList: ['demo:read'] } } });
        for (const [agent, platform] of [
          [known, forge],
          [await limited(own), 'demo'],
        ] as const) {
          const made = await issue(agent, { grants: [grant({ platform, constraints })] });
          expect([made.status, made.body.granted?.[0].constraints], made.text).toEqual([201, constraints]);
        }
      }
    });

    test.each<[string, Record<string, unknown>, Record<string, unknown>]>([
      ['another repository', { repos: ['acme/*'] }, { repos: ['acme/*', 'other/x'] }],
      ['all repositories of an owner for one of them', { repos: ['acme/a'] }, { repos: ['acme/*'] }],
      ['any repository when the parent has none', { repos: [] }, { repos: ['acme/a'] }],
      ['another domain', { recipients: ['@acme.example'] }, { recipients: ['@evil.example'] }],
      ['a subdomain', { recipients: ['@acme.example'] }, { recipients: ['ann@sub.acme.example'] }],
      ['a whole domain for one address of it', { recipients: ['ann@acme.example'] }, { recipients: ['@acme.example'] }],
      ['another branch', { refs: ['agent/*'] }, { refs: ['agent/x', 'main'] }],
      ['any number of segments for one', { refs: ['agent/*'] }, { refs: ['agent/**'] }],
      ['a pattern that is not provably narrower', { refs: ['a*'] }, { refs: ['*b'] }],
      ['another case of letters', { refs: ['agent/*'] }, { refs: ['Agent/x'] }],
      ['a tag', { refs: ['**'] }, { refs: ['refs/tags/v1'] }],
      ['any branch when the parent has none', { refs: [] }, { refs: ['agent/x'] }],
      ['a kind of change that the parent lacks', { ref_changes: ['create'] }, { ref_changes: ['create', 'delete'] }],
      ['CH-07 repository creation that the parent lacks', { repos: ['acme/*'] }, { allow_repo_creation: true }],
    ])('CH-04 looser constraints are refused: %s', async (_what, own, constraints) => {
      await refused(
        await limited(own),
        { grants: [grant({ constraints })] },
        400,
        'child_constraints_looser_than_parent',
      );
    });

    test.each<[string, unknown]>([
      ['*/*', { repos: ['*/*'] }],
      ['two stars', { repos: ['acme/**'] }],
      ['a path', { repos: ['acme/../x'] }],
      ['no owner', { repos: ['x'] }],
      ['a name with .git', { repos: ['acme/repo.git'] }],
      ['65 repositories', { repos: Array.from({ length: 65 }, (_, i) => `acme/r${i}`) }],
      ['repos as a string', { repos: 'acme/*' }],
      ['repos null', { repos: null }],
      ['an invalid recipient', { recipients: ['@'] }],
      ['an empty recipient', { recipients: [''] }],
      ['a ref outside of branches and tags', { refs: ['refs/notes/x'] }],
      ['** in the middle', { refs: ['agent/**/x'] }],
      ['65 refs', { refs: Array.from({ length: 65 }, (_, i) => `b${i}`) }],
      ['refs null', { refs: null }],
      ['an unknown kind of change', { ref_changes: ['force'] }],
      ['repository creation as a string', { allow_repo_creation: 'yes' }],
      ['an unknown member', { repositories: ['acme/*'] }],
      ['a list', []],
      ['a string', 'acme/*'],
    ])('CH-04 malformed constraints are refused: %s', async (_what, constraints) => {
      const answer = await refused(parent, { grants: [grant({ constraints })] }, 400, 'invalid_constraints');
      expect(answer.body.detail).toContain('constraints');
    });
  });

  describe('connections', () => {
    test('CH-08 a connection without a grant, of another organisation, or unknown: the same answer', async () => {
      const second = await organisation.connection('demo', { isDefault: false });
      const elsewhere = await world.organisation();
      await elsewhere.platform();
      const theirs = await elsewhere.connection('demo', { isDefault: false });
      const details = [];
      for (const connection_id of [second, theirs, crypto.randomUUID(), 'x']) {
        const answer = await refused(
          parent,
          { grants: [grant({ connection_id })] },
          400,
          'no_scopes_after_attenuation',
        );
        details.push(answer.body.detail);
      }
      expect(new Set(details).size).toBe(1);
    });

    test('a connection with a grant of the parent can be passed on, each with its own scopes', async () => {
      const own = await world.organisation();
      await own.platform();
      const second = await own.connection('demo', { isDefault: false });
      const agent = await own.agent({ grants: { demo: { connection_id: second, scopeList: ['demo:read'] } } });
      const given = await issue(agent, {
        grants: [grant({ connection_id: second, scopes: ['demo:read', 'demo:write'] })],
      });
      expect(given.body.granted[0]).toMatchObject({ connection_id: second, scopes: ['demo:read'] });
      const shouted = await issue(agent, { grants: [grant({ connection_id: second.toUpperCase() })] });
      expect(shouted.body.granted?.[0]).toMatchObject({ connection_id: second });
      // Omitted: the connection that the parent's own calls use.
      const left = await issue(agent, { grants: [grant({ connection_id: null })] });
      expect(left.body.granted[0].connection_id).toBe(second);
      const both = [grant({ connection_id: second }), grant()];
      expectEnvelope(await issue(agent, { grants: both }), 400, 'invalid_grants');
    });
  });

  describe('permission to have children', () => {
    test('CH-09 a child cannot have children', async () => {
      const child = await childOf(world, organisation, parent);
      await refused(child, { grants: ALL_DEMO }, 403, 'forbidden');
      await refused(child, '{}', 403, 'forbidden');
    });

    test.each(['suspend', 'revoke'])('a stopped agent cannot: %s', async (verb) => {
      const agent = await organisation.agent();
      expect((await issue(agent)).status).toBe(201);
      await organisation.ask('POST', `/owner/agents/${agent.id}/${verb}`, {});
      const { body } = await refused(agent, { grants: ALL_DEMO }, 403, 'agent_not_active');
      expect(body.halt.cause).toBe('owner_manual');
    });

    test('an expired agent, and one that is not set up yet, cannot', async () => {
      const mortal = await organisation.agent({ agent: { expires_at: Date.now() + HOUR_MS } });
      world.clock.skewMs = HOUR_MS;
      await refused(mortal, { grants: ALL_DEMO }, 403, 'agent_not_active');
      const pending = await organisation.agent({ agent: { status: 'pending', agent_type: null } });
      await refused(pending, { grants: ALL_DEMO }, 403, 'agent_not_active');
    });

    test('a request without a bearer is refused', async () => {
      const answer = await send(`${parent.baseUrl}/v1/agents/children`, { method: 'POST', body: '{}' });
      expectEnvelope(answer, 401, 'missing_token');
    });
  });
});

test('POST /v1/agents/children → 503: CH-13 without a signing key nothing is created', async () => {
  const world = await startWorld();
  const organisation = await world.organisation();
  await organisation.platform();
  const parent = await organisation.agent();
  const { broker } = world.running;
  const { db } = broker.store;
  const keys = await db.selectFrom('signing_keys').selectAll().where('use', '=', 'issuing').execute();
  const without = (private_key: Uint8Array | null) =>
    db.updateTable('signing_keys').set({ private_key }).where('use', '=', 'issuing').execute();
  await without(null);
  await broker.keys.refresh();
  expectEnvelope(await issue(parent), 503, 'as_signing_unavailable');
  expect(await listGrants(db, organisation.id)).toHaveLength(1);
  expect(await db.selectFrom('agents').selectAll().where('parent_id', 'is not', null).execute()).toEqual([]);
  await without(keys[0]!.private_key);
  await broker.keys.refresh();
  expect((await issue(parent)).status).toBe(201);
  expect((await (await childOf(world, organisation, parent)).act(READ)).status).toBe(200);
});
