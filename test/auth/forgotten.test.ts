/** Forgetting an owner's identity, because the address now belongs to somebody else: the former person keeps no access. */
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, send } from '../world/agent.ts';
import { Browser } from '../world/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { startLyingProvider } from '../world/lying-provider.ts';
import { decideWith, enrol } from '../world/passkeys.ts';
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
