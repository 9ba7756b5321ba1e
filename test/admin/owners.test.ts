/** Owners and settings of an organisation, changed by its admins and by the operator. */
import { describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { lockOrganisation } from '../../broker/store/governance.ts';
import { putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import { deleteOwner, findOrganisation, findOwnersByEmail, putOwner } from '../../broker/store/organisations.ts';
import { forgetIdentity } from '../../broker/store/owner-identities.ts';
import type { Db } from '../../broker/store/store.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectStatus, jsonPost, makeKeyPair, send } from '../world/agent.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, givenWorld, shared, WRITE } from '../world/world.ts';

describe.each(STORES)(`owners and their organisation on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const other = shared(() => world.organisation());
  const organisation = fresh(() => world.organisation());
  const owners = async () => (await organisation.ask('GET', '/owner/owners')).body.owners as OwnerTable[];
  const add = (body: Record<string, unknown>, by?: OwnerTable) => organisation.ask('POST', '/owner/owners', body, by);
  const remove = (id: string, by?: OwnerTable) => organisation.ask('DELETE', `/owner/owners/${id}`, undefined, by);
  const local = (body: unknown, path = '/owner/owners') =>
    send(
      world.running.baseUrl + path,
      jsonPost(body, { authorization: `Bearer ${world.running.services.local.token.reveal()}` }),
    );
  /** Returns the newest event of the organisation, with its verified receipt. */
  const lastEvent = async () => {
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    const receipt = await organisation.ask('GET', `/v1/audit/${rows[0].id}/receipt`);
    return { row: rows[0], payload: (await verifyReceipt(world, receipt.body.receipt)).payload };
  };
  const events = async () => (await organisation.ask('GET', '/owner/audit')).body.rows.length as number;

  test('an admin adds an owner, in force immediately; it is recorded, without the address in the receipt', async () => {
    const added = await add({ email: 'Ann@Acme.example', role: 'approver' });
    expect([added.status, added.body]).toEqual([
      200,
      { id: expect.any(String), email: 'ann@acme.example', role: 'approver' },
    ]);
    expect((await owners()).map(({ email, role }) => `${email} ${role}`).toSorted()).toEqual([
      'ann@acme.example approver',
      `${organisation.owner.email} admin`,
    ]);
    const { row, payload } = await lastEvent();
    expect(row).toMatchObject({ kind: 'event', reason: 'owner_added', detail: 'ann@acme.example', result: null });
    expect(payload).toMatchObject({
      reason: 'owner_added',
      change: { by: organisation.owner.id, how: 'api', owner: added.body.id, role: 'approver' },
    });
    expect(JSON.stringify(payload)).not.toContain('acme.example');
    // In this organisation only.
    expect((await other.ask('GET', '/owner/owners')).text).not.toContain('ann@acme.example');
  });

  test('adding an owner again changes the role; without a change no event is recorded', async () => {
    const { body } = await add({ email: 'bob@acme.example', role: 'viewer' });
    const changed = await add({ email: 'BOB@acme.example', role: 'admin' });
    expect(changed.body).toEqual({ id: body.id, email: 'bob@acme.example', role: 'admin' });
    expect((await lastEvent()).row).toMatchObject({ reason: 'owner_changed', detail: 'bob@acme.example' });
    expect((await lastEvent()).payload.change).toMatchObject({ owner: body.id, role: 'admin', before: 'viewer' });
    const before = await events();
    expect((await add({ email: 'bob@acme.example', role: 'admin' })).status).toBe(200);
    expect(await events()).toBe(before);
  });

  test('the operator adds owners, too, and has to name the organisation', async () => {
    const { name } = (await findOrganisation(world.db, organisation.id))!;
    expectEnvelope(await local({ email: 'eve@acme.example', role: 'viewer' }), 400, 'invalid_request');
    expectEnvelope(await local({ email: 'eve@acme.example', role: 'viewer', organisation: 'x' }), 404, 'not_found');
    const added = await local({ email: 'eve@acme.example', role: 'viewer', organisation: name });
    expect(added.body).toMatchObject({ email: 'eve@acme.example', role: 'viewer' });
    const { row, payload } = await lastEvent();
    expect(row).toMatchObject({ reason: 'owner_added', detail: 'eve@acme.example' });
    expect(payload.change).toMatchObject({ by: 'operator', how: 'local' });
  });

  test('the operator acts as an owner of several organisations in the oldest one, whichever row was written last', async () => {
    const email = 'ann@several.example';
    const [older, newer] = [await world.organisation(), await world.organisation()];
    const created = { email, role: 'admin', origin: 'added', created_at: 1 } as const;
    const made = Date.parse('2026-01-01T00:00:00Z');
    for (const [{ id }, at] of [
      [older, made],
      [newer, made + 1],
    ] as const)
      await world.db.updateTable('organisations').set({ created_at: at }).where('id', '=', id).execute();
    await putOwner(world.db, { ...created, organisation_id: newer.id, id: uuidv4() });
    const { id } = await putOwner(world.db, { ...created, organisation_id: older.id, id: uuidv4() });
    expect((await findOwnersByEmail(world.db, email)).map((one) => one.organisation_id)).toEqual([older.id, newer.id]);
    // An update moves the row to the end of a PostgreSQL table.
    await world.db.updateTable('owners').set({ last_sign_in_at: 2 }).where('id', '=', id).execute();
    expect((await findOwnersByEmail(world.db, email)).map((one) => one.organisation_id)).toEqual([older.id, newer.id]);
  });

  test('an admin can add owners to the own organisation only', async () => {
    const { name } = (await findOrganisation(world.db, other.id))!;
    const foreign = await add({ email: 'eve@acme.example', role: 'admin', organisation: name });
    expectEnvelope(foreign, 400, 'invalid_request');
    expect((await other.ask('GET', '/owner/owners')).text).not.toContain('eve@acme.example');
  });

  test.each([
    [{}],
    [{ email: 'no address', role: 'admin' }],
    [{ email: 'ann@acme.example', role: 'root' }],
    [{ email: 'ann@acme.example', role: 'admin', id: 'x' }],
  ])('%j is refused', async (body) => {
    expectEnvelope(await add(body), 400, 'invalid_request');
    expect(await owners()).toHaveLength(1);
  });

  test('approvers and viewers can list owners, and change nothing', async () => {
    for (const role of ['viewer', 'approver'] as const) {
      const one = await organisation.addOwner(role);
      expect((await organisation.ask('GET', '/owner/owners', undefined, one)).status).toBe(200);
      expect((await organisation.ask('GET', '/owner/organisation', undefined, one)).status).toBe(200);
      expectEnvelope(await add({ email: 'x@acme.example', role: 'admin' }, one), 403, 'forbidden');
      expectEnvelope(await remove(organisation.owner.id, one), 403, 'forbidden');
      expectEnvelope(
        await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 60 }, one),
        403,
        'forbidden',
      );
    }
  });

  test('what a removed owner decided keeps their address, until somebody else has it', async () => {
    const [bob, eve] = [await organisation.addOwner('admin'), await organisation.addOwner('admin')];
    await organisation.platform();
    const agent = await organisation.agent();
    const decidedBy = async (owner: OwnerTable) => {
      const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} };
      const id = await agent.hold(call);
      expect((await organisation.deny(id, {}, owner)).status).toBe(200);
      return async () => (await organisation.ask('GET', `/owner/approvals/${id}`)).body.decided_by_email;
    };
    const [bobs, eves] = [await decidedBy(bob), await decidedBy(eve)];
    const former = async () => (await organisation.ask('GET', '/owner/owners')).body.former;
    const table = async () => (await organisation.ask('GET', '/owner/audit/export?format=csv')).text;
    expect(await former()).toEqual([]);
    for (const { id } of [bob, eve]) expect((await remove(id)).status).toBe(200);
    expect(await bobs()).toBe(bob.email);
    expect(await former()).toMatchObject([
      { id: bob.id, email: bob.email, removed_at: expect.stringMatching(/Z$/) },
      { id: eve.id, email: eve.email },
    ]);
    expect(await table()).toMatch(new RegExp(`approval_denied.*${bob.email}`));
    await add({ email: bob.email, role: 'viewer' });
    expect(await bobs()).toBe(bob.email);
    await add({ email: bob.email, role: 'viewer', forget_identity: true });
    expect([await bobs(), await eves()]).toEqual([null, eve.email]);
    expect(await former()).toMatchObject([{ id: eve.id }]);
    expect(await table()).not.toMatch(new RegExp(`approval_denied.*${bob.email}`));
    // Another organisation does not learn of them.
    expect((await other.ask('GET', '/owner/owners')).body.former).toEqual([]);
  });

  test('a removed owner is refused from the next request, with all sessions and passkeys', async () => {
    const bob = await organisation.addOwner('admin');
    await world.db
      .insertInto('passkeys')
      .values({
        organisation_id: organisation.id,
        id: crypto.randomUUID(),
        owner_id: bob.id,
        credential_id: crypto.randomUUID(),
        public_key: Buffer.from('key'),
        counter: 0,
        transports: '[]',
        device_name: 'phone',
        aaguid: '',
        synced: 0,
        status: 'active',
        created_at: Date.now(),
        last_used_at: null,
      })
      .execute();
    const session = mintOwnerSession(world.running.broker, bob).token;
    const me = () => send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${session}` } });
    expect((await me()).status).toBe(200);
    const removed = await remove(bob.id.toUpperCase());
    expect([removed.status, removed.body]).toEqual([200, { removed: true, id: bob.id }]);
    expectEnvelope(await me(), 401, 'invalid_token');
    expect(await world.db.selectFrom('passkeys').selectAll().where('owner_id', '=', bob.id).execute()).toEqual([]);
    const { row, payload } = await lastEvent();
    expect(row).toMatchObject({ reason: 'owner_removed', detail: bob.email });
    expect(payload.change).toMatchObject({ owner: bob.id, role: 'admin', agents_passed_on: 0 });
    expectEnvelope(await remove(bob.id), 404, 'not_found');
    // An owner who is added again is a new one: the old session stays ended.
    await add({ email: bob.email, role: 'admin' });
    expectEnvelope(await me(), 401, 'invalid_token');
  });

  test.each([
    ['removed', (bad: OwnerTable) => remove(bad.id)],
    ['demoted', ({ email }: OwnerTable) => add({ email, role: 'viewer' })],
  ])('unused invites, links and tokens of an admin end when the admin is %s', async (_what, end) => {
    await organisation.platform();
    const agent = await organisation.agent();
    const bad = await organisation.addOwner('admin');
    const made = async (path: string, body: object) => {
      const answer = await organisation.ask('POST', path, body, bad);
      expect(answer.status, answer.text).toBeLessThan(300);
      return answer.body;
    };
    const link = await made(`/owner/owners/${organisation.owner.id}/link`, {});
    const { bootstrap_token } = await made(`/owner/agents/${agent.id}/bootstrap-token`, { rotate: true });
    const { bind_secret } = await made('/owner/invites', {
      agent_name: 'invited',
      grants: [{ platformId: 'demo', scopes: ['demo:read'] }],
    });
    await made('/owner/secret-authorizations', { agent: agent.id, platform: 'demo' });
    const applied = await made('/owner/governance/apply', { text: 'agents: { late: {} }', values: {} });
    const post = (path: string, body: object) => send(world.running.baseUrl + path, jsonPost(body));
    const { publicPem: public_key_pem } = makeKeyPair();
    expect((await end(bad)).status).toBe(200);
    expectEnvelope(await post('/owner/sign-in', { token: new URL(link.url).hash.slice(1) }), 410, 'link_used');
    for (const token of [bootstrap_token, applied.bootstrap_tokens[0].token]) {
      const bound = await post('/v1/agents/bind', { bootstrap_token: token, public_key_pem });
      expectEnvelope(bound, 410, 'token_used');
    }
    expectEnvelope(await post('/v1/invites/bind', { bind_secret, public_key_pem }), 410, 'token_used');
    expect((await organisation.ask('GET', '/owner/secret-authorizations')).body.authorizations).toEqual([]);
    expect((await agent.get('/v1/agents/me')).status).toBe(200);
  });

  // On SQLite a request that waits has not been authenticated yet.
  test.runIf(store === 'postgres').each([
    ['removed', (db: Db, { id }: OwnerTable) => deleteOwner(db, organisation.id, id, Date.now())],
    ['demoted', (db: Db, bad: OwnerTable) => putOwner(db, { ...bad, role: 'viewer' })],
    ['unlinked from the account', (db: Db, bad: OwnerTable) => forgetIdentity(db, bad, Date.now() + MINUTE_MS)],
  ])('a request of an admin that waits is not carried out when the admin is %s meanwhile', async (_what, end) => {
    await organisation.platform();
    const agent = await organisation.agent();
    const halted = await organisation.agent({ name: 'halted', grants: {}, agent: { status: 'suspended' } });
    await organisation.platform({ id: 'off' });
    expect((await organisation.ask('POST', '/owner/platforms/off/suspend', {})).status).toBe(200);
    const registering = { owner_id: organisation.owner.id, agent_name: 'waiting', requested_scopes: [] };
    await expectStatus(202, send(`${world.running.baseUrl}/v1/register`, jsonPost(registering)));
    const [{ id: registration }] = (await organisation.ask('GET', '/owner/registrations')).body.registrations;
    const bob = await organisation.addOwner('viewer');
    await organisation.agent({ name: 'old', grants: {}, agent: { owner_id: bob.id, status: 'revoked' } });
    const asked: [string, string, ((bad: OwnerTable) => object)?][] = [
      [
        'POST',
        '/owner/invites',
        () => ({ agent_name: 'invited', grants: [{ platformId: 'demo', scopes: ['demo:read'] }] }),
      ],
      ['POST', '/owner/owners', () => ({ email: 'friend@acme.example', role: 'admin' })],
      ['POST', `/owner/agents/${agent.id}/bootstrap-token`, () => ({ rotate: true })],
      ['POST', `/owner/owners/${organisation.owner.id}/link`, () => ({})],
      ['DELETE', `/owner/owners/${bob.id}`],
      ['POST', '/owner/guardrails', () => ({ guardrails: [] })],
      ['POST', '/owner/organisation', () => ({ approval_ttl_seconds: 600 })],
      ['POST', `/owner/agents/${halted.id}/resume`, () => ({})],
      ['POST', '/owner/platforms/off/resume', () => ({})],
      ['POST', `/owner/registrations/${registration}/reject`, () => ({})],
      [
        'POST',
        '/owner/governance/apply',
        ({ email }) => ({ text: `owners: [{ email: ${email}, role: admin }]`, values: {} }),
      ],
    ];
    const before = await events();
    for (const [method, path, body] of asked) {
      const bad = await organisation.addOwner('admin');
      const answer = await withLockContention(
        world,
        async (tx) => {
          await lockOrganisation(tx, organisation.id);
          await end(tx, bad);
        },
        () => organisation.ask(method, path, body?.(bad), bad),
        { waiters: 1 },
      );
      expectEnvelope(answer, 403, 'forbidden');
      expect(answer.body.detail, path).toContain('You were removed or signed out, or your role was changed');
    }
    expect(await events()).toBe(before);
  });

  test('nobody can remove themselves, an owner of another organisation, or an unknown owner', async () => {
    expectEnvelope(await remove(organisation.owner.id), 409, 'conflict');
    for (const id of [other.owner.id, crypto.randomUUID(), 'x', '%00'])
      expectEnvelope(await remove(id), 404, 'not_found');
    expect((await other.ask('GET', '/owner/me')).status).toBe(200);
  });

  test('the last admin can neither be demoted nor removed, by the operator either', async () => {
    const { name } = (await findOrganisation(world.db, organisation.id))!;
    const lesser = { email: organisation.owner.email, role: 'viewer' };
    const answer = await add(lesser);
    expectEnvelope(answer, 409, 'conflict');
    expect(answer.body.detail).toContain('last admin');
    expectEnvelope(await local({ ...lesser, organisation: name }), 409, 'conflict');
    await organisation.addOwner('admin');
    expect((await add(lesser)).body.role).toBe('viewer');
  });

  test('of two admins who remove each other concurrently one stays', async () => {
    for (let round = 0; round < 5; round++) {
      const fresh = await world.organisation();
      const bob = await fresh.addOwner('admin');
      const answers = await Promise.all([
        fresh.ask('DELETE', `/owner/owners/${bob.id}`),
        fresh.ask('DELETE', `/owner/owners/${fresh.owner.id}`, undefined, bob),
      ]);
      const left = await world.db.selectFrom('owners').select('role').where('organisation_id', '=', fresh.id).execute();
      expect(left, JSON.stringify(answers.map(({ body }) => body))).toEqual([{ role: 'admin' }]);
      // The second request lost its session or role to the first, or violated the rule.
      expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(1);
      for (const { status } of answers) expect([200, 401, 403, 409]).toContain(status);
    }
  });

  test('an owner with live agents cannot be removed, and the refusal names them; revoked agents pass on', async () => {
    const bob = await organisation.addOwner('approver');
    const agent = await organisation.agent({ name: 'triage', grants: {}, agent: { owner_id: bob.id } });
    const gone = await organisation.agent({ name: 'old', grants: {}, agent: { owner_id: bob.id, status: 'deleted' } });
    const refused = await remove(bob.id);
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body.detail).toContain(`triage (${agent.agentId})`);
    expect(refused.body.detail).not.toMatch(/\bold\b/);
    expect(await owners()).toHaveLength(2);
    await organisation.ask('POST', `/owner/agents/${agent.id}/revoke`, {});
    expect((await remove(bob.id)).status).toBe(200);
    const owned = await world.db
      .selectFrom('agents')
      .select(['id', 'owner_id'])
      .where('organisation_id', '=', organisation.id)
      .execute();
    expect(owned.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
      [agent.id, gone.id].toSorted().map((id) => ({ id, owner_id: organisation.owner.id })),
    );
    expect((await lastEvent()).payload.change.agents_passed_on).toBe(2);
  });

  test('an owner who authorised an MCP client can be removed: the client’s authorisation passes to the removing admin', async () => {
    const bob = await organisation.addOwner('admin');
    const agent = await organisation.agent({ name: 'cursor', grants: {}, agent: { agent_type: 'mcp_client' } });
    const now = world.running.broker.clock();
    const authorisation = { id: uuidv4(), organisation_id: organisation.id, agent_id: agent.id, owner_id: bob.id };
    const client = { client_id: 'c', client_name: 'Cursor', redirect_host: 'localhost', scope: 'mcp:read' };
    await putMcpAuthorisation(world.db, { ...authorisation, ...client, created_at: now, expires_at: now + 3_600_000 });
    await expectStatus(200, remove(bob.id));
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    expect(authorisations).toMatchObject([{ id: authorisation.id, owner_id: organisation.owner.id }]);
  });

  test('after an identity was unlinked another account can be linked at the next sign-in', async () => {
    const bob = await organisation.addOwner('viewer');
    await world.db
      .updateTable('owners')
      .set({ oidc_subject: 'https://id.example 42' })
      .where('id', '=', bob.id)
      .execute();
    const isKnown = async () =>
      ((await owners()) as unknown as { id: string; identity_known: boolean }[]).find(({ id }) => id === bob.id)!
        .identity_known;
    expect(await isKnown()).toBe(true);
    expect((await organisation.ask('GET', '/owner/owners')).text).not.toContain('id.example');
    await add({ email: bob.email, role: 'viewer' });
    expect(await isKnown()).toBe(true);
    await add({ email: bob.email, role: 'viewer', forget_identity: true });
    expect(await isKnown()).toBe(false);
    expect((await lastEvent()).payload.change).toMatchObject({ owner: bob.id, identity: 'forgotten' });
  });

  test('an unused sign-in link ends when the identity is forgotten; the links of others, and later ones, do not', async () => {
    const [bob, eve] = [await organisation.addOwner('viewer'), await organisation.addOwner('viewer')];
    const linkFor = async ({ email }: OwnerTable) => {
      const { body } = await expectStatus(200, local({ email }, '/owner/link'));
      return new URL(body.url).hash.slice(1);
    };
    const signIn = (token: string) => send(`${world.running.baseUrl}/owner/sign-in`, jsonPost({ token }));
    const [former, others] = [await linkFor(bob), await linkFor(eve)];
    expect((await add({ email: bob.email, role: 'viewer', forget_identity: true })).status).toBe(200);
    expectEnvelope(await signIn(former), 410, 'link_used');
    expect((await signIn(others)).body.email).toBe(eve.email);
    expect((await signIn(await linkFor(bob))).body.email).toBe(bob.email);
  });

  test('the settings of an organisation: omitted members stay unchanged, and each change is recorded', async () => {
    const { body: was } = await organisation.ask('GET', '/owner/organisation');
    expect(was).toEqual({
      id: organisation.id,
      agents_stopped: null,
      restored: null,
      name: expect.any(String),
      approval_ttl_seconds: 86_400,
      require_user_verification: false,
      passkey_deciders: 'default',
      publish_identity_documents: false,
      auto_suspend: null,
      caller_issuers: [],
      retention: { reads_days: null, calls_days: null, events_days: null },
      created_at: expect.stringMatching(/Z$/),
    });
    const set = (body: unknown) => organisation.ask('POST', '/owner/organisation', body);
    const shorter = await set({ approval_ttl_seconds: 600 });
    expect(shorter.body).toEqual({ ...was, approval_ttl_seconds: 600 });
    const { row, payload } = await lastEvent();
    expect(row).toMatchObject({ kind: 'event', reason: 'organisation_changed' });
    expect(payload.change).toEqual({ by: organisation.owner.id, how: 'api', approval_ttl_seconds: 600 });
    expect((await set({ require_user_verification: true })).body).toEqual({
      ...was,
      approval_ttl_seconds: 600,
      require_user_verification: true,
    });
    const before = await events();
    for (const body of [{}, { approval_ttl_seconds: 600 }, { require_user_verification: true }])
      expect((await set(body)).status).toBe(200);
    expect(await events()).toBe(before);
    expect((await other.ask('GET', '/owner/organisation')).body.approval_ttl_seconds).toBe(86_400);
  });

  test('a held call expires after the time that the organisation has set', async () => {
    await organisation.platform();
    const agent = await organisation.agent();
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 61 });
    const held = await agent.act({ ...WRITE, data: {} });
    expect(held.status).toBe(202);
    const { body } = await agent.get(`/v1/approvals/${held.body.approval_id}`);
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBe(61_000);
  });

  test.each([
    [{ approval_ttl_seconds: 59 }],
    [{ approval_ttl_seconds: 604_801 }],
    [{ approval_ttl_seconds: 60.5 }],
    [{ approval_ttl_seconds: '60' }],
    [{ require_user_verification: 1 }],
    [{ name: 'mine' }],
  ])('%j is not a valid setting', async (body) => {
    expectEnvelope(await organisation.ask('POST', '/owner/organisation', body), 400, 'invalid_request');
    expect((await organisation.ask('GET', '/owner/organisation')).body.approval_ttl_seconds).toBe(86_400);
  });
});
