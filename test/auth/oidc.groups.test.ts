/** Roles of owners by their groups at the identity provider (OIDC_ROLES). */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { exportGovernance } from '../../broker/config-plan/export.ts';
import { updateAgent } from '../../broker/store/agents.ts';
import type { Db } from '../../broker/store/store.ts';
import { type Answer, expectStatus, jsonPost, jsonRequest, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { assertionFor, decideWith, enrol, signBegin, signFinish } from '../world/passkeys.ts';
import { startLyingProvider } from '../world/servers/lying-provider.ts';
import { startPushService, subscribe } from '../world/servers/push-service.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { DEMO_RULES, givenWorld, shared, WRITE } from '../world/world.ts';

const DAY_MS = 24 * 60 * MINUTE_MS;
const ROLES = JSON.stringify({ admin: ['broker admins'], approver: ['on call'], viewer: ['staff'] });

describe.each(ONE_STORE)(`roles by groups on %s${postgresNote}`, (store) => {
  const provider = shared(() => startLyingProvider());
  const world = givenWorld(store, () => ({ ...provider.settings, OIDC_ROLES: ROLES }));
  // The oldest organisation, to which the groups apply.
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  let sub: string;
  let email: string;
  beforeEach(() => {
    organisation.id;
    world.clock.skewMs = 0;
    provider.beHonest();
    provider.metadata = { userinfo_endpoint: `${provider.issuer}/userinfo` };
    atUserinfo({});
    provider.clock = () => Date.now() + world.clock.skewMs;
    sub = `sub-${crypto.randomUUID()}`;
    email = `${sub}@acme.example`;
  });

  const atUserinfo = (claims: object) =>
    provider.answers.set(
      '/userinfo',
      (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ sub, ...claims })),
    );

  type Came = { visit: Answer; me: () => Promise<Answer> };
  async function signIn(groups: unknown, more: Record<string, unknown> = {}, at = ''): Promise<Came> {
    provider.claims = { sub, email, email_verified: true, ...(groups !== undefined && { groups }), ...more };
    const browser = new Browser();
    const visit = await browser.get(`${world.running.baseUrl}/console/oidc/start${at}`);
    const address = `${world.running.baseUrl}/owner/me`;
    return { visit, me: () => send(address, { headers: { cookie: browser.cookieFor(address) } }) };
  }
  const roleNow = async (came: Came) => {
    expect(came.visit.status, came.visit.text).toBe(200);
    return (await came.me()).body.role;
  };
  const member = async () =>
    (await organisation.ask('GET', '/owner/owners')).body.owners.find((one: Answer['body']) => one.email === email);
  const rows = async () => (await organisation.ask('GET', '/owner/audit')).body.rows;
  const changes = async () =>
    (await rows()).filter((row: Answer['body']) => row.reason === 'owner_changed' && row.detail === email);

  test.each([
    [['staff'], 'viewer'],
    [['staff', 'on call'], 'approver'],
    [['on call', 'others', 'broker admins'], 'admin'],
    ['on call', 'approver'],
  ])('a person in %j signs in as %s, without an invite', async (groups, role) => {
    expect(await roleNow(await signIn(groups))).toBe(role);
    expect(await member()).toMatchObject({ role, role_by_groups: true, identity_known: true, origin: 'added' });
    const [signedIn, added] = await rows();
    expect([signedIn.reason, added.reason, added.detail]).toEqual(['owner_signed_in', 'owner_added', email]);
    expect(added.flags.change).toMatchObject({ role, by_groups: true, by: 'broker' });
    expect(await roleNow(await signIn(groups))).toBe(role);
    expect(await changes()).toEqual([]);
  });

  test.each([[['somebody else']], [[]], [undefined], [{ staff: true }], [[['staff']]], [[7]]])(
    'a person in none of the groups (%j) is refused as not invited',
    async (groups) => {
      const { visit } = await signIn(groups);
      expect([visit.status, visit.text]).toEqual([403, expect.stringContaining('who is no owner here')]);
      expect(await member()).toBeUndefined();
    },
  );

  test('groups that are missing in the ID token are read from the userinfo endpoint', async () => {
    atUserinfo({ groups: ['on call'] });
    expect(await roleNow(await signIn(undefined))).toBe('approver');
  });

  test('an address that is not verified is refused, whatever the groups', async () => {
    const { visit } = await signIn(['broker admins'], { email_verified: false });
    expect(visit.status).toBe(403);
    expect(await member()).toBeUndefined();
  });

  test('the role follows the groups at each sign-in; without a group it becomes viewer, and the sessions end', async () => {
    const first = await signIn(['broker admins']);
    expect(await roleNow(first)).toBe('admin');
    expect(await roleNow(await signIn(['staff']))).toBe('viewer');
    // Earlier sessions have the new role, too.
    expect((await first.me()).body.role).toBe('viewer');
    expect(await roleNow(await signIn(['on call']))).toBe('approver');
    world.clock.skewMs += 1_000;
    const refused = await signIn(['elsewhere']);
    expect([refused.visit.status, refused.visit.text]).toEqual([
      403,
      expect.stringContaining('reports no group that still gives a role here'),
    ]);
    expect((await first.me()).status).toBe(401);
    expect(await member()).toMatchObject({ role: 'viewer', role_by_groups: true });
    const [changed] = await rows();
    expect([changed.reason, changed.flags.change]).toEqual([
      'owner_changed',
      expect.objectContaining({ before: 'approver', role: 'viewer', by_groups: true, by: 'broker' }),
    ]);
    expect((await signIn(['elsewhere'])).visit.status).toBe(403);
    expect(await changes()).toHaveLength(3);
    world.clock.skewMs += 1_000;
    expect(await roleNow(await signIn(['on call']))).toBe('approver');
  });

  test('a role given by an invite or by an admin is kept, whatever the groups', async () => {
    await organisation.ask('POST', '/owner/owners', { email, role: 'viewer' });
    for (const groups of [['broker admins'], ['elsewhere'], undefined])
      expect(await roleNow(await signIn(groups))).toBe('viewer');
    expect(await member()).toMatchObject({ role_by_groups: false });
    for (const groups of [['broker admins'], ['elsewhere']]) {
      const token = await provider.sign(provider.honest({ sub, groups }));
      const me = await send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
      expect([me.status, me.body.role], me.text).toEqual([200, 'viewer']);
    }
    sub = `sub-${crypto.randomUUID()}`;
    email = `${sub}@acme.example`;
    expect(await roleNow(await signIn(['staff']))).toBe('viewer');
    expect((await organisation.ask('POST', '/owner/owners', { email, role: 'viewer' })).status).toBe(200);
    expect(await member()).toMatchObject({ role_by_groups: false });
    expect(await roleNow(await signIn(['broker admins']))).toBe('viewer');
  });

  // On SQLite a sign-in runs entirely before the change or after it.
  test.skipIf(store === 'sqlite').each<[string, (db: Db, id: string) => Promise<unknown>, object | undefined]>([
    [
      'a role',
      (db, id) => db.updateTable('owners').set({ role: 'viewer', role_by_groups: 0 }).where('id', '=', id).execute(),
      { role: 'viewer', role_by_groups: false },
    ],
    ['no place any more', (db, id) => db.deleteFrom('owners').where('id', '=', id).execute(), undefined],
  ])('a person whom an admin gives %s during the sign-in keeps that', async (_what, change, expected) => {
    expect(await roleNow(await signIn(['staff']))).toBe('viewer');
    const { id } = await member();
    const held = (db: Db) => db.updateTable('organisations').set({ publish_identity_documents: 0 }).execute();
    const came = () => signIn(['broker admins']);
    await withLockContention(world, held, came, { waiters: 1, last: (db) => change(db, id) });
    const found = await member();
    expect(found && { role: found.role, role_by_groups: found.role_by_groups }).toEqual(expected);
  });

  test('an address that belongs to another account is not taken over', async () => {
    expect(await roleNow(await signIn(['staff']))).toBe('viewer');
    sub = `sub-${crypto.randomUUID()}`;
    const { visit } = await signIn(['broker admins']);
    expect(visit.status).toBe(403);
    expect(await member()).toMatchObject({ role: 'viewer' });
  });

  test('a bearer of the provider has no higher role than its groups give, and is refused without a group', async () => {
    expect(await roleNow(await signIn(['broker admins']))).toBe('admin');
    const bearer = async (more: object) => {
      const token = await provider.sign(provider.honest({ sub, email, email_verified: true, ...more }));
      return await send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
    };
    expect((await bearer({ groups: ['broker admins'] })).body.role).toBe('admin');
    expect((await bearer({ groups: ['staff'] })).body.role).toBe('viewer');
    expect((await bearer({})).body.role).toBe('admin');
    expectEnvelope(await bearer({ groups: ['elsewhere'] }), 401, 'invalid_token');
    // A bearer without groups is accepted for as long as a passkey decides without a session.
    world.clock.skewMs += 31 * DAY_MS;
    const late = await bearer({});
    expectEnvelope(late, 401, 'token_expired');
    expect(late.body.detail).toContain('Sign in to the console once');
    expect((await bearer({ groups: ['broker admins'] })).body.role).toBe('admin');
    expect(await roleNow(await signIn(['broker admins']))).toBe('admin');
    expect((await bearer({})).body.role).toBe('admin');
  });

  test('a bearer whose groups give a lower role has that role for reading and deciding', async () => {
    await signIn(['broker admins']);
    const ask = async (groups: string[], path: string, body?: object) => {
      const token = await provider.sign(provider.honest({ sub, groups }));
      const init = jsonRequest(body ? 'POST' : 'GET', body, { authorization: `Bearer ${token}` });
      return await send(world.running.baseUrl + path, init);
    };
    const { owners } = (await ask(['staff'], '/owner/owners')).body;
    expect(owners.every(({ passkeys }: Answer['body']) => passkeys === null)).toBe(true);
    const asked = {
      owner_id: organisation.owner.id,
      agent_name: sub.slice(0, 20),
      requested_scopes: [{ platformId: 'demo', scopes: ['demo:read'] }],
    };
    const { registration_token: token } = (await send(`${world.running.baseUrl}/v1/register`, jsonPost(asked))).body;
    expectEnvelope(await ask(['on call'], `/v1/register/approve/${token}`, {}), 403, 'forbidden');
    expect((await ask(['broker admins'], `/v1/register/approve/${token}`, {})).status).toBe(200);
  });

  test('a passkey decides without a session for 30 days after the last sign-in, and again after the next sign-in', async () => {
    const came = await signIn(['on call']);
    expect(await roleNow(came)).toBe('approver');
    const { id } = (await came.me()).body;
    const owner = (await world.db.selectFrom('owners').selectAll().where('id', '=', id).executeTakeFirst())!;
    await organisation.ask('POST', '/owner/organisation', { passkey_deciders: 'approvers' });
    const device = await enrol(world, organisation, { by: owner });
    const agent = await organisation.agent({ rules: DEMO_RULES });
    agent.clock = () => Date.now() + world.clock.skewMs;
    const decide = async () => {
      const held = await expectStatus(202, agent.act(WRITE));
      return await decideWith(world, 'approve', held.body.approval_id, device);
    };
    expect((await decide()).status).toBe(200);
    world.clock.skewMs += 31 * DAY_MS;
    const refused = await decide();
    expect([refused.status, refused.body.detail]).toEqual([403, expect.stringContaining('more than 30 days ago')]);
    expect(await roleNow(await signIn(['on call']))).toBe('approver');
    expect((await decide()).status).toBe(200);
  });

  test('the agent’s owner approves by passkey for 30 days after the last sign-in, and cannot begin or finish it later', async () => {
    const came = await signIn(['on call']);
    expect(await roleNow(came)).toBe('approver');
    const { id } = (await came.me()).body;
    const owner = (await world.db.selectFrom('owners').selectAll().where('id', '=', id).executeTakeFirst())!;
    const device = await enrol(world, organisation, { by: owner });
    const agent = await organisation.agent({ name: 'owned', rules: DEMO_RULES });
    agent.clock = () => Date.now() + world.clock.skewMs;
    await updateAgent(world.db, organisation.id, agent.id, { owner_id: id });
    world.clock.skewMs = 30 * DAY_MS - 2 * MINUTE_MS;
    const [first, second] = [await agent.hold(WRITE), await agent.hold(WRITE)];
    expect((await signFinish(world, await assertionFor(world, first, device))).status).toBe(200);
    const late = await assertionFor(world, second, device);
    world.clock.skewMs += 3 * MINUTE_MS;
    expectEnvelope(await signFinish(world, late), 400, 'verification_failed');
    expectEnvelope(await signBegin(world, second), 404, 'not_found');
    expect((await organisation.ask('GET', `/owner/approvals/${second}`)).body.status).toBe('pending');
  });

  test('a person’s own devices are notified for 30 days after the last sign-in, and removed when no group gives a role', async () => {
    const service = await startPushService(world);
    const came = await signIn(['staff']);
    const { id } = (await came.me()).body;
    const owner = (await world.db.selectFrom('owners').selectAll().where('id', '=', id).executeTakeFirst())!;
    const [theirs, admins] = [subscribe(service), subscribe(service)];
    const add = (json: object, by = organisation.owner) =>
      organisation.ask('POST', '/owner/push-subscriptions', { ...json, device_name: 'Phone' }, by);
    for (const added of [await add(theirs.json, owner), await add(admins.json)]) expect(added.status).toBe(201);
    const agent = await organisation.agent({ name: 'told of', rules: DEMO_RULES });
    agent.clock = () => Date.now() + world.clock.skewMs;
    /** Returns whose devices are notified of a call that is held now; when the one before expires, those notified of it are notified again. */
    const told = async () => {
      service.pushed.length = 0;
      const held = await expectStatus(202, agent.act(WRITE));
      const isPushed = ({ json }: typeof theirs) => service.pushed.some(({ path }) => json.endpoint.endsWith(path));
      await expect.poll(() => isPushed(admins), { timeout: 5_000 }).toBe(true);
      // Deliveries of one notice are stored in one transaction and sent concurrently.
      await expect
        .poll(
          async () => await world.db.selectFrom('notice_deliveries').select('id').where('state', '=', 'due').execute(),
        )
        .toEqual([]);
      const owners = await world.db
        .selectFrom('notice_deliveries as d')
        .innerJoin('notice_channels as c', (j) => j.onRef('c.id', '=', 'd.channel_id'))
        .select('c.owner_id')
        .where('d.subject_id', '=', held.body.approval_id)
        .where('d.step', '=', 'first')
        .where('d.state', '=', 'sent')
        .execute();
      if (!owners.some(({ owner_id }) => owner_id === id)) return 'the admin';
      expect(isPushed(theirs)).toBe(true);
      return 'both';
    };
    expect(await told()).toBe('both');
    world.clock.skewMs += 31 * DAY_MS;
    expect(await told()).toBe('the admin');
    await signIn(['staff']);
    expect(await told()).toBe('both');
    world.clock.skewMs += 1_000;
    expect((await signIn(['elsewhere'])).visit.status).toBe(403);
    expect(await told()).toBe('the admin');
    world.clock.skewMs += 1_000;
    await signIn(['staff']);
    expect((await organisation.ask('GET', '/owner/push-subscriptions', undefined, owner)).body.subscriptions).toEqual(
      [],
    );
  });

  test('an export omits owners by groups with a comment, and a role given by a file is kept', async () => {
    expect(await roleNow(await signIn(['staff']))).toBe('viewer');
    const text = await exportGovernance(world.running.broker, organisation.id, world.running.broker.clock());
    expect(text).not.toContain(email);
    expect(text).toContain('Owners by groups of the identity provider are not in this file');
    expect((await organisation.ask('POST', '/owner/governance/plan', { text })).body.changes).toEqual([]);
    const given = text.replace('owners:\n', `owners:\n  - email: ${email}\n    role: approver\n`);
    expect((await organisation.ask('POST', '/owner/governance/apply', { text: given })).status).toBe(200);
    expect(await roleNow(await signIn(['staff']))).toBe('approver');
    expect(await member()).toMatchObject({ role_by_groups: false });
  });

  test('a person without a group can still sign in to other organisations that invited them', async () => {
    const other = await world.demoOrganisation();
    expect(await roleNow(await signIn(['staff']))).toBe('viewer');
    expect((await other.ask('POST', '/owner/owners', { email, role: 'admin' })).status).toBe(200);
    const before = await signIn(['staff'], {}, `?organisation=${other.id}`);
    expect(await roleNow(before)).toBe('admin');
    expect(await roleNow(await signIn(['elsewhere'], {}, `?organisation=${other.id}`))).toBe('admin');
    expect((await before.me()).body.role).toBe('admin');
    // The default organisation is skipped, because the person has no role there.
    expect((await (await signIn(['elsewhere'])).me()).body.organisation.id).toBe(other.id);
    const { visit } = await signIn(['elsewhere'], {}, `?organisation=${organisation.id}`);
    expect([visit.status, visit.text]).toEqual([
      403,
      expect.stringContaining('reports no group that still gives a role'),
    ]);
  });

  test('an id that no organisation has is an error in the log at each sign-in', async () => {
    const { config, log } = world.running.broker;
    const groups = config.oidc!.groups as { organisation: string | undefined };
    groups.organisation = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';
    const logged = vi.spyOn(log, 'error');
    onTestFinished(() => {
      groups.organisation = undefined;
      logged.mockRestore();
    });
    expect((await signIn(['broker admins'])).visit.status).toBe(403);
    expect(logged).toHaveBeenCalledExactlyOnceWith(
      { organisation: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff' },
      expect.stringContaining('there is no organisation with the id in OIDC_ROLES_ORGANISATION'),
    );
  });

  test('an older organisation whose name is the id of the configured one gets no owners by groups', async () => {
    const other = await world.demoOrganisation();
    const groups = world.running.broker.config.oidc!.groups as { organisation: string | undefined };
    const name = (to: string) =>
      world.db.updateTable('organisations').set({ name: to }).where('id', '=', organisation.id).execute();
    const { name: former } = (await organisation.ask('GET', '/owner/me')).body.organisation;
    onTestFinished(async () => {
      groups.organisation = undefined;
      await name(former);
    });
    groups.organisation = other.id;
    await name(other.id);
    expect((await (await signIn(['broker admins'])).me()).body.organisation.id).toBe(other.id);
    expect(await member()).toBeUndefined();
  });

  test('the last admin stays admin', async () => {
    await world.db.updateTable('owners').set({ role_by_groups: 1 }).where('id', '=', organisation.owner.id).execute();
    const { email: theirs } = organisation.owner;
    const others = (await organisation.ask('GET', '/owner/owners')).body.owners.filter(
      (one: Answer['body']) => one.role === 'admin' && one.email !== theirs,
    );
    for (const { email: other } of others)
      await organisation.ask('POST', '/owner/owners', { email: other, role: 'viewer' });
    await world.db.updateTable('owners').set({ origin: 'added' }).where('id', '=', organisation.owner.id).execute();
    email = theirs;
    expect(await roleNow(await signIn(['staff']))).toBe('admin');
    expect(await member()).toMatchObject({ role: 'admin', role_by_groups: true });
  });
});
