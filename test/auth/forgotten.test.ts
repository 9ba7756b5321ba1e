/** Forgetting an owner's identity, because the address now belongs to somebody else: the former person keeps no access. */
import { beforeEach, describe, expect, test } from 'vitest';
import { addOwner } from '../../broker/admin/organisations/owners.ts';
import { enrolPasskey } from '../../broker/approvals/passkeys/enrolment.ts';
import { AuthorNotAllowed } from '../../broker/audit/author-role.ts';
import { authenticateSession, beginSession } from '../../broker/auth/owner-session.ts';
import { correlationId as newCorrelationId } from '../../broker/crypto/ids.ts';
import { expectStatus, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { decideWith, enrol, registerBegin } from '../world/passkeys.ts';
import { startLyingProvider } from '../world/servers/lying-provider.ts';
import { Authenticator } from '../world/software-authenticator.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { DEMO_RULES, givenWorld, shared, WRITE } from '../world/world.ts';

describe.each(STORES)(`forgetting an identity, on %s${postgresNote}`, (store) => {
  const provider = shared(() => startLyingProvider());
  const world = givenWorld(store, () => provider.settings);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  let email: string;
  let id: string;
  beforeEach(async () => {
    provider.beHonest();
    provider.clock = () => Date.now() + world.clock.skewMs;
    email = `ann-${crypto.randomUUID()}@acme.example`;
    id = (await organisation.ask('POST', '/owner/owners', { email, role: 'admin' })).body.id;
  });

  const me = (headers: Record<string, string>) => send(`${world.running.baseUrl}/owner/me`, { headers });
  const claims = (person: string) => ({ sub: `${person} ${email}`, email, email_verified: true });
  const bearer = async (person: string) => ({
    authorization: `Bearer ${await provider.sign(provider.honest(claims(person)))}`,
  });
  /** Signs a person in. Returns the session's cookie header. */
  const signIn = async (person: string) => {
    provider.claims = claims(person);
    const browser = new Browser();
    await browser.get(`${world.running.baseUrl}/console/oidc/start`);
    return { cookie: browser.cookieFor(`${world.running.baseUrl}/owner/me`) };
  };
  const forget = async () => {
    const asked = { email, role: 'admin', forget_identity: true };
    expect((await organisation.ask('POST', '/owner/owners', asked)).status).toBe(200);
    // Times in the provider's tokens are whole seconds.
    world.clock.skewMs += 1_000;
  };

  test('a sign-in just after the identity is forgotten stays valid, one just before does not', async () => {
    const ann = await signIn('ann');
    expect((await me(ann)).status).toBe(200);
    // Starts at the beginning of a second, so that everything happens in the same one.
    world.clock.skewMs += 1_000 - (world.running.broker.clock() % 1_000);
    const asked = { email, role: 'admin', forget_identity: true };
    expect((await organisation.ask('POST', '/owner/owners', asked)).status).toBe(200);
    world.clock.skewMs += 5;
    const bea = await signIn('bea');
    expect((await me(bea)).body.id).toBe(id);
    expectEnvelope(await me(ann), 401, 'token_expired');
  });

  test('a bearer with fractional times is accepted', async () => {
    const iat = provider.clock() / 1000 - 1.000_456_7;
    const token = await provider.sign(provider.honest({ ...claims('ann'), iat }));
    expect((await me({ authorization: `Bearer ${token}` })).body.id).toBe(id);
  });

  test('the former person’s session and bearers end, and the person who now has the address becomes the owner', async () => {
    const ann = await signIn('ann');
    const old = await bearer('ann');
    for (const headers of [ann, old]) expect((await me(headers)).body.id).toBe(id);
    await forget();
    // An old bearer does not bind the identity again before the new person signs in, either.
    for (const headers of [ann, old]) expectEnvelope(await me(headers), 401, 'token_expired');
    const bea = await signIn('bea');
    for (const headers of [bea, await bearer('bea')]) expect((await me(headers)).body.id).toBe(id);
    for (const headers of [ann, old]) expect((await me(headers)).status).toBe(401);
  });

  test('requests of the former person that began before, and end afterwards, enrol no passkey, change nothing and sign nobody in', async () => {
    const { services, broker } = world.running;
    const [, session = ''] = (await signIn('ann')).cookie.split('=');
    const ann = await authenticateSession(broker, session);
    if (ann.kind !== 'owner') throw new Error(ann.detail);
    const { owner } = ann;
    const device = new Authenticator(world.running.baseUrl);
    const begun = await expectStatus(200, registerBegin(organisation, owner));
    const by = { owner, session: ann.session.marks, how: 'console', correlationId: newCorrelationId() } as const;
    const enrolPhone = () =>
      enrolPasskey(services, by, { response: device.create(begun.body) as never, deviceName: 'Phone' });
    const invite = () => addOwner(services, by, { email: `of-${email}`, role: 'admin', forgetsIdentity: false });
    const provider = { session: { person: 'ann' }, authTime: undefined };
    const start = { by: 'provider', from: '127.0.0.1', correlationId: by.correlationId, replaces: null } as const;
    const begin = () => beginSession(services, owner, { ...start, provider });
    const db = broker.store.db;
    const stored = async () => [
      (await db.selectFrom('passkeys').selectAll().where('owner_id', '=', id).execute()).length,
      (await db.selectFrom('owners').selectAll().where('email', '=', `of-${email}`).execute()).length,
    ];
    await expect(begin()).resolves.toMatchObject({ token: expect.any(String) });
    await forget();
    for (const late of [enrolPhone, invite, begin]) await expect(late()).rejects.toThrow(AuthorNotAllowed);
    expect(await stored()).toEqual([0, 0]);
    // Counter-example: the same requests of the person who is the owner now.
    const [, newSession = ''] = (await signIn('bea')).cookie.split('=');
    const bea = await authenticateSession(broker, newSession);
    if (bea.kind !== 'owner') throw new Error(bea.detail);
    Object.assign(by, { owner: bea.owner, session: bea.session.marks });
    expect(await enrolPhone()).toMatchObject({ kind: 'enrolled' });
    await invite();
    expect(await stored()).toEqual([1, 1]);
  });

  test('the former person’s passkey cannot decide any more, and the invite they made is removed', async () => {
    await organisation.ask('POST', '/owner/organisation', { passkey_deciders: 'approvers' });
    const db = world.db;
    const by = (await db.selectFrom('owners').selectAll().where('id', '=', id).executeTakeFirst())!;
    const device = await enrol(world, organisation, { by });
    const asked = { agent_name: email.slice(0, 20), grants: [{ platformId: 'demo', scopes: ['demo:read'] }] };
    await expectStatus(200, organisation.ask('POST', '/owner/invites', asked, by));
    await forget();
    const held = await (await organisation.agent({ name: email.slice(0, 16), rules: DEMO_RULES })).act(WRITE);
    expectEnvelope(await decideWith(world, 'approve', held.body.approval_id, device), 400, 'verification_failed');
    const { owners } = (await organisation.ask('GET', '/owner/owners')).body;
    expect(owners.find((one: { id: string }) => one.id === id).passkeys).toEqual([]);
    const { invites } = (await organisation.ask('GET', '/owner/invites')).body;
    expect(invites).toEqual([]);
  });
});
