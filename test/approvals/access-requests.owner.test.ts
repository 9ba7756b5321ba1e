/** Access requests through the owner API. */
import { beforeAll, describe, expect, test } from 'vitest';
import { listGrants } from '../../broker/store/agents.ts';
import type { GrantTable } from '../../broker/store/tables/rules.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf, expectEnvelope } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { givenWorld, type Organisation, READ, shared } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { title: 'x' } };
const MANY = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`many:${i}`, [`GET /${i}`]]));

describe.each(STORES)(`owners decide access requests on %s${postgresNote}`, (store) => {
  /** For tests that do not depend on the store's SQL. */
  const onOne = testOnOne(store);
  let policy: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    await organisation.platform({ id: 'many', manifest: { scopes: MANY } });
    policy = await organisation.policy([{ effect: 'allow' }]);
  });

  type Grants = NonNullable<NonNullable<Parameters<Organisation['agent']>[0]>['grants']>;
  const newAgent = (grants: Grants = { demo: { scopeList: ['demo:read'] } }, more: object = {}) =>
    organisation.agent({ policy, grants, ...more });
  /** Sends an access request, and returns the id by which owners find it. */
  async function ask(agent: TestAgent, body: Record<string, unknown> = {}): Promise<string> {
    const answer = await agent.post('/v1/access-request', { platform: 'demo', scope: 'demo:write', ...body });
    expect(answer.status, answer.text).toBe(202);
    const row = await world.db
      .selectFrom('access_requests')
      .select('id')
      .where('token', '=', answer.body.request_token)
      .executeTakeFirstOrThrow();
    return row.id;
  }
  const approve = (id: string, body: unknown = {}, by?: Parameters<Organisation['ask']>[3]) =>
    organisation.ask('POST', `/owner/access-requests/${id}/approve`, body, by);
  const deny = (id: string, body: unknown = {}, by?: Parameters<Organisation['ask']>[3]) =>
    organisation.ask('POST', `/owner/access-requests/${id}/deny`, body, by);
  const read = (id: string) => organisation.ask('GET', `/owner/access-requests/${id}`);
  const grantsOf = (agent: TestAgent): Promise<GrantTable[]> => listGrants(world.db, organisation.id, agent.id);
  const grantOf = async (agent: TestAgent) => (await grantsOf(agent))[0]!;

  onOne('one of a child names its parent, which chose the name of the child', async () => {
    const parent = await newAgent({ demo: { scopeList: ['demo:read', 'demo:write'] } }, { name: 'parent' });
    const grants = [{ platform: 'demo', scopes: ['demo:read'] }];
    const id = await ask(await childOf(world, organisation, parent, { name: 'triage', grants }));
    const named = { name: 'triage', parent: { agent_id: parent.agentId, name: 'parent' } };
    expect((await read(id)).body.agent).toMatchObject(named);
    const { access_requests: listed } = (await organisation.ask('GET', '/owner/access-requests?limit=1')).body;
    expect(listed[0].agent).toMatchObject(named);
    await deny(id);
  });

  onOne('one shows who asks for what and why, and what there is to grant', async () => {
    const agent = await newAgent();
    const id = await ask(agent, { reason: 'to rename' });
    const { body, text } = await expectStatus(200, read(id.toUpperCase()));
    expect(body).toEqual({
      request_id: id,
      status: 'pending',
      created_at: expect.stringMatching(/Z$/),
      expires_at: expect.stringMatching(/Z$/),
      expires_in_seconds: expect.any(Number),
      agent: { id: agent.id, agent_id: agent.agentId, name: 'triage', status: 'active', ended: false, parent: null },
      platform: 'demo',
      platform_name: 'demo',
      scope: 'demo:write',
      reason_code: 'not_granted',
      reason: 'to rename',
      decided_at: null,
      decided_by: null,
      decided_by_email: null,
      note: null,
      granted: null,
      audit_id: null,
      platform_scopes: ['demo:read', 'demo:write', 'demo:delete'],
      connections: [{ connection_id: expect.any(String), label: 'demo-main', default: true }],
      grants: [expect.objectContaining({ platform: 'demo', connection: null, scopes: ['demo:read'], expired: false })],
    });
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(DAY_MS);
    // Owners never see the agent's token.
    expect(text).not.toContain('req_');
    await approve(id, { note: 'fine' });
    expect((await read(id)).body).toMatchObject({
      status: 'approved',
      expires_in_seconds: null,
      decided_by: organisation.owner.id,
      decided_by_email: organisation.owner.email,
      note: 'fine',
      granted: ['demo:write'],
      audit_id: expect.any(String),
    });
  });

  test('the list: newest first, in pages, filtered by status, of the own organisation only', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const allowed = await fresh.policy([{ effect: 'allow' }]);
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      world.clock.skewMs += 5;
      const agent = await fresh.agent({ policy: allowed, grants: {}, name: `agent-${i}` });
      ids.unshift(await ask(agent));
    }
    const list = async (query: string) => (await fresh.ask('GET', `/owner/access-requests?${query}`)).body;
    const idsOf = (page: { access_requests: { request_id: string }[] }) =>
      page.access_requests.map((one) => one.request_id);
    const first = await list('limit=2');
    expect([idsOf(first), first.next]).toEqual([ids.slice(0, 2), ids[1]]);
    const second = await list(`limit=2&before=${first.next.toUpperCase()}`);
    expect(idsOf(second)).toEqual(ids.slice(2, 4));
    const last = await list(`limit=2&before=${second.next}`);
    expect([idsOf(last), last.next]).toEqual([ids.slice(4), null]);
    await fresh.ask('POST', `/owner/access-requests/${ids[0]}/approve`, {});
    await fresh.ask('POST', `/owner/access-requests/${ids[1]}/deny`, {});
    expect(idsOf(await list('status=approved'))).toEqual([ids[0]]);
    expect(idsOf(await list('status=denied'))).toEqual([ids[1]]);
    expect(idsOf(await list('status=pending'))).toEqual(ids.slice(2));
    world.clock.skewMs += DAY_MS;
    expect(idsOf(await list('status=expired'))).toEqual(ids.slice(2));
    expect(idsOf(await list('status=pending'))).toEqual([]);
    const theirs = await organisation.ask('GET', '/owner/access-requests');
    for (const id of ids) expect(theirs.text).not.toContain(id);
    expect((await list(`before=${crypto.randomUUID()}`)).access_requests).toEqual([]);
  });

  onOne.each(['limit=0', 'limit=201', 'limit=x', 'status=open', 'before=x', 'before=%00'])(
    'the list refuses ?%s',
    async (query) => {
      expectEnvelope(await organisation.ask('GET', `/owner/access-requests?${query}`), 400, 'invalid_request');
    },
  );

  onOne('who may do what: viewers read, approvers deny, admins approve', async () => {
    const [viewer, approver, admin] = await Promise.all(
      (['viewer', 'approver', 'admin'] as const).map((role) => organisation.addOwner(role)),
    );
    const agent = await newAgent();
    const id = await ask(agent);
    const other = await ask(agent, { scope: 'demo:delete' });
    for (const owner of [viewer, approver, admin])
      for (const path of ['/owner/access-requests', `/owner/access-requests/${id}`])
        expect((await organisation.ask('GET', path, undefined, owner)).status).toBe(200);
    for (const owner of [viewer, approver]) expectEnvelope(await approve(id, {}, owner), 403, 'forbidden');
    expectEnvelope(await deny(id, {}, viewer), 403, 'forbidden');
    expect((await read(id)).body.status).toBe('pending');
    expect((await deny(other, {}, approver)).body.decided_by).toBe(approver!.id);
    expect((await approve(id, {}, admin)).body.decided_by).toBe(admin!.id);
  });

  onOne('requests of another organisation are not there', async () => {
    const other = await world.organisation();
    const agent = await newAgent();
    const id = await ask(agent);
    for (const wrong of [id, crypto.randomUUID(), 'x', '%00', `${id}%20`])
      for (const [method, path] of [
        ['GET', ''],
        ['POST', '/approve'],
        ['POST', '/deny'],
      ] as const) {
        const body = method === 'POST' ? {} : undefined;
        expectEnvelope(await other.ask(method, `/owner/access-requests/${wrong}${path}`, body), 404, 'not_found');
      }
    expect((await read(id)).body.status).toBe('pending');
    expect((await agent.act(WRITE)).status).toBe(403);
  });

  test('a second decision on a request is refused', async () => {
    const agent = await newAgent();
    const approved = await ask(agent);
    const denied = await ask(agent, { scope: 'demo:delete' });
    expect((await approve(approved)).status).toBe(200);
    expect((await deny(denied)).status).toBe(200);
    for (const [id, status] of [
      [approved, 'approved'],
      [denied, 'denied'],
    ] as const)
      for (const answer of [await approve(id), await deny(id)]) {
        expectEnvelope(answer, 409, 'already_decided');
        expect(answer.body.status).toBe(status);
      }
    expect(JSON.parse((await grantOf(agent)).scopes)).toEqual(['demo:read', 'demo:write']);
  });

  onOne.each<[string, 'approve' | 'deny', unknown]>([
    ['a body that is not an object', 'approve', []],
    ['an unknown member', 'approve', { scope: 'demo:write' }],
    ['no scopes', 'approve', { scopes: [] }],
    ['a scope that the platform does not have', 'approve', { scopes: ['demo:wirte'] }],
    ['a pattern for scopes', 'approve', { scopes: ['demo:*'] }],
    ['a connection that is not a UUID', 'approve', { connection_id: 'x' }],
    ['an unknown connection', 'approve', { connection_id: crypto.randomUUID() }],
    ['a duration of 0', 'approve', { expires_in_seconds: 0 }],
    ['half a second', 'approve', { expires_in_seconds: 60.5 }],
    ['more than ten years', 'approve', { expires_in_seconds: 3651 * 24 * 3600 }],
    ['require_approval as text', 'approve', { require_approval: 'yes' }],
    ['an empty note', 'approve', { note: '' }],
    ['a note that is too long', 'approve', { note: 'x'.repeat(1001) }],
    ['NUL in the note', 'deny', { note: '\0' }],
    ['scopes in a denial', 'deny', { scopes: ['demo:write'] }],
  ])('400: %s (%s), and nothing is decided', async (_what, verb, body) => {
    const agent = await newAgent();
    const id = await ask(agent);
    expectEnvelope(await (verb === 'approve' ? approve(id, body) : deny(id, body)), 400, 'invalid_request');
    expect((await read(id)).body.status).toBe('pending');
    expect(JSON.parse((await grantOf(agent)).scopes)).toEqual(['demo:read']);
  });

  onOne('a connection of another platform, or of another organisation, is none', async () => {
    const other = await world.organisation();
    await other.platform({ secret: null });
    const id = await ask(await newAgent());
    for (const connection_id of [
      await other.connection('demo'),
      await organisation.connection('many', { isDefault: false }),
    ])
      expectEnvelope(await approve(id, { connection_id }), 400, 'invalid_request');
  });

  test('an approval without a body grants the requested scope and keeps the other terms of the grant', async () => {
    const expires_at = Date.now() + DAY_MS;
    const constraints = JSON.stringify({ recipients: ['@acme.example'] });
    const terms = {
      scopeList: ['demo:read'],
      constraints,
      require_approval: 1 as const,
      expires_at,
      expires_text: '1d',
    };
    const agent = await newAgent({ demo: terms });
    const before = await grantOf(agent);
    const { body } = await approve(await ask(agent), undefined);
    expect(await grantsOf(agent)).toEqual([{ ...before, scopes: '["demo:read","demo:write"]' }]);
    expect(body.grant).toMatchObject({
      grant_id: before.id,
      scopes: ['demo:read', 'demo:write'],
      require_approval: true,
      expires_at: new Date(expires_at).toISOString(),
      recipients: ['@acme.example'],
    });
    expect(body.next_steps).toEqual([]);
    const { payload, row } = await evidenceOf(world, agent, body.audit_id);
    expect(payload.change.after).toMatchObject({ recipients: 1, require_approval: true });
    expect(JSON.stringify([payload, row])).not.toContain('acme.example"');
  });

  test('terms that are sent with an approval become part of the grant', async () => {
    const agent = await newAgent({});
    const id = await ask(agent);
    const began = Date.now();
    const words = {
      scopes: ['demo:delete', 'demo:read', 'demo:read'],
      expires_in_seconds: 3600,
      require_approval: true,
    };
    const { body } = await approve(id, words);
    expect(body).toMatchObject({
      granted: words.scopes,
      grant: { scopes: ['demo:delete', 'demo:read'], require_approval: true },
    });
    const grant = await grantOf(agent);
    expect(grant).toMatchObject({ connection_id: null, constraints: '{}', expires_text: null });
    expect(grant.expires_at! - began).toBeGreaterThanOrEqual(3_600_000);
    expect(grant.expires_at! - began).toBeLessThan(3_600_000 + 60_000);
    expect((await agent.act(READ)).status).toBe(202);
    expect((await agent.act(WRITE)).body.reason).toBe('scope_not_granted');
    const again = await approve(await ask(agent), { expires_in_seconds: null, require_approval: false });
    expect(again.body.grant).toMatchObject({ expires_at: null, require_approval: false });
    expect((await agent.act(WRITE)).status).toBe(200);
  });

  onOne('for the platform as a whole the owner says which scopes', async () => {
    const agent = await newAgent({});
    const id = await ask(agent, { scope: undefined });
    expect((await read(id)).body.scope).toBeNull();
    expectEnvelope(await approve(id), 400, 'invalid_request');
    expect((await approve(id, { scopes: ['demo:read'] })).body.granted).toEqual(['demo:read']);
    expect((await agent.act(READ)).status).toBe(200);
  });

  onOne('a grant that ended is renewed only by saying until when', async () => {
    const agent = await newAgent({
      demo: { scopeList: ['demo:write'], expires_at: Date.now() - 1, expires_text: '1d' },
    });
    expect((await agent.act(WRITE)).body.reason).toBe('grant_expired');
    const id = await ask(agent);
    const refused = await approve(id);
    expectEnvelope(refused, 400, 'invalid_request');
    expect(refused.body.detail).toMatch(/^expires_in_seconds: the grant ended on 20/);
    expect((await read(id)).body.status).toBe('pending');
    expect((await approve(id, { expires_in_seconds: null })).body.grant).toMatchObject({
      expires_at: null,
      expired: false,
    });
    expect(await grantsOf(agent)).toHaveLength(1);
    expect((await agent.act(WRITE)).status).toBe(200);
  });

  onOne(
    'with several connections the one that is named gains it, or else the one that calls use by default',
    async () => {
      const second = await organisation.connection('demo', { isDefault: false });
      const agent = await newAgent();
      const named = await approve(await ask(agent), { connection_id: second });
      expect(named.body.grant).toMatchObject({ connection: { connection_id: second }, scopes: ['demo:write'] });
      expect(named.body.next_steps).toEqual([]);
      expect((await agent.act(WRITE)).body.reason).toBe('scope_not_granted');
      expect((await agent.act({ ...WRITE, connection_id: second })).status).toBe(200);
      const byDefault = await approve(await ask(agent));
      expect(byDefault.body.grant).toMatchObject({ connection: null, scopes: ['demo:read', 'demo:write'] });
      expect((await agent.act(WRITE)).status).toBe(200);
      expect(await grantsOf(agent)).toHaveLength(2);
    },
  );

  onOne('a platform that refused its credential: it is granted, and the answer says to connect it again', async () => {
    const connection = await organisation.connection('demo', { isDefault: false });
    const agent = await newAgent();
    await world.db.updateTable('connections').set({ status: 'reauth_needed' }).where('id', '=', connection).execute();
    const { body } = await approve(await ask(agent), { connection_id: connection });
    expect(body.next_steps).toEqual([
      { reason: 'platform_reauth_needed', detail: expect.stringMatching(/^Connect demo again: .*\.$/) },
    ]);
  });

  onOne.each<[string, string, string, string]>([
    ['a platform that is not connected', 'bare', 'not_connected', 'platform_not_connected'],
    ['a policy without a matching rule', 'demo', 'scope_denied', 'denied_by_policy'],
  ])('%s: it is granted, and the answer says what is still to be done', async (_what, platform, code, step) => {
    const quiet = await organisation.policy([{ effect: 'allow', scopes: ['demo:read'] }]);
    if (platform === 'bare') await organisation.platform({ id: 'bare', secret: null });
    const agent = await newAgent(
      { [platform]: { scopeList: ['demo:write'] } },
      code === 'scope_denied' ? { policy: quiet } : {},
    );
    const id = await ask(agent, { platform });
    expect((await read(id)).body.reason_code).toBe(code);
    const { body } = await approve(id);
    expect(body).toMatchObject({
      status: 'approved',
      next_steps: [{ reason: step, detail: expect.stringMatching(/\.$/) }],
    });
  });

  onOne('an agent that a governance file decides about: the answer says that the file should say so too', async () => {
    const agent = await newAgent({}, { agent: { origin: 'governance' } });
    const { body } = await approve(await ask(agent));
    expect(body.next_steps).toEqual([{ reason: 'governance_file', detail: expect.stringContaining('apply') }]);
  });

  test('a request of a revoked agent cannot be approved any more', async () => {
    const revoked = await newAgent();
    const id = await ask(revoked);
    await organisation.ask('POST', `/owner/agents/${revoked.id}/revoke`, {});
    for (const decide of [approve, deny]) expectEnvelope(await decide(id), 410, 'request_expired');
    expect((await read(id)).body).toMatchObject({ status: 'expired', agent: { ended: true } });
    expect(JSON.parse((await grantOf(revoked)).scopes)).toEqual(['demo:read']);
  });

  onOne('a platform that is gone gives nothing; denying is possible', async () => {
    const gone = await organisation.platform({ id: 'gone' });
    const ofGone = await ask(await newAgent({}), { platform: gone });
    await world.db.deleteFrom('connections').where('platform_id', '=', gone).execute();
    await world.db.deleteFrom('platforms').where('platform_id', '=', gone).execute();
    expectEnvelope(await approve(ofGone), 409, 'conflict');
    expect((await read(ofGone)).status).toBe(200);
    expect((await deny(ofGone)).body.status).toBe('denied');
  });

  test('of 50 concurrent decisions one succeeds: one grant, one event', async () => {
    const agent = await newAgent({});
    const id = await ask(agent);
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => (i % 5 === 4 ? deny(id) : approve(id))));
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    for (const answer of answers) if (answer !== won[0]) expectEnvelope(answer, 409, 'already_decided');
    const { status } = won[0]!.body;
    expect(await grantsOf(agent)).toHaveLength(status === 'approved' ? 1 : 0);
    const events = (await organisation.ask('GET', '/owner/audit?limit=200')).body.rows.filter(
      (row: { agent_id: string; kind: string }) => row.agent_id === agent.id && row.kind === 'event',
    );
    expect(events.map((row: { reason: string }) => row.reason)).toEqual([`access_request_${status}`]);
  });

  test('20 requests of one agent that are approved concurrently: no scope is lost', async () => {
    const agent = await newAgent({ many: { scopeList: [] } });
    const ids: string[] = [];
    for (const scope of Object.keys(MANY)) ids.push(await ask(agent, { platform: 'many', scope }));
    const answers = await Promise.all(ids.map((id) => approve(id)));
    expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200));
    expect(JSON.parse((await grantOf(agent)).scopes).sort()).toEqual(Object.keys(MANY).sort());
    const fresh = await newAgent({});
    const first = await ask(fresh, { platform: 'many', scope: 'many:1' });
    const second = await ask(fresh, { platform: 'many', scope: 'many:2' });
    await Promise.all([approve(first), approve(second)]);
    expect((await grantsOf(fresh)).map(({ scopes }) => JSON.parse(scopes).sort())).toEqual([['many:1', 'many:2']]);
  });

  test('a decision that cannot be recorded is not made', async () => {
    const agent = await newAgent();
    const id = await ask(agent);
    await whileAuditRowsAreRefused(world, async () => {
      for (const answer of [await approve(id), await deny(id)]) expectEnvelope(answer, 503, 'audit_unavailable');
    });
    expect((await read(id)).body.status).toBe('pending');
    expect(JSON.parse((await grantOf(agent)).scopes)).toEqual(['demo:read']);
    expect((await approve(id)).status).toBe(200);
  });
});
