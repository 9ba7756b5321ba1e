/** Back-channel logout: when somebody signs out at the identity provider, their sessions here end (OpenID Connect Back-Channel Logout 1.0). */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { startIdentityProvider } from '../world/servers/identity-provider.ts';
import { type LyingProvider, makeSigner, startLyingProvider } from '../world/servers/lying-provider.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { givenWorld, shared } from '../world/world.ts';

const EVENTS = { 'http://schemas.openid.net/event/backchannel-logout': {} };

describe.each(ONE_STORE)(`signing out at an identity provider on %s${postgresNote}`, (store) => {
  const provider = shared(() => startIdentityProvider());
  const world = givenWorld(store, () => provider.settings);
  beforeAll(() => provider.serve(world.running.baseUrl));
  const organisation = shared(() => world.organisation());

  test('ends the session that was begun by the provider’s session, and no other', async () => {
    const start = `${world.running.baseUrl}/console/oidc/start`;
    const login = `sub-${crypto.randomUUID().slice(0, 8)}`;
    const email = `${login}@acme.example`;
    provider.people.set(login, { email, email_verified: true });
    await organisation.ask('POST', '/owner/owners', { email, role: 'viewer' });
    const [one, other] = [new Browser(), new Browser()];
    for (const browser of [one, other]) await provider.signIn(browser, login, start);
    const me = async (browser: Browser) => {
      const address = `${world.running.baseUrl}/owner/me`;
      return await send(address, { headers: { cookie: browser.cookieFor(address) } });
    };
    expect([(await me(one)).status, (await me(other)).status]).toEqual([200, 200]);
    expect((await provider.signOut(one)).status).toBe(200);
    expectEnvelope(await me(one), 401, 'token_expired');
    expect((await me(other)).status).toBe(200);
    // The same browser can sign in again.
    await provider.signIn(one, login, start);
    expect((await me(one)).status).toBe(200);
  });
});

describe.each(ONE_STORE)(`logout tokens on %s${postgresNote}`, (store) => {
  const provider = shared(() => startLyingProvider());
  const world = givenWorld(store, () => provider.settings);
  const organisations = shared(async () => [await world.organisation(), await world.organisation()]);
  let ann: { sub: string; email: string };
  /** Ids of sessions at the provider, unique to each test. */
  let one: string;
  let two: string;
  beforeEach(async () => {
    world.clock.skewMs = 0;
    provider.beHonest();
    provider.clock = () => Date.now() + world.clock.skewMs;
    const sub = `sub-${crypto.randomUUID()}`;
    one = crypto.randomUUID();
    two = crypto.randomUUID();
    ann = { sub, email: `${sub}@acme.example` };
    for (const where of organisations) await where.ask('POST', '/owner/owners', { email: ann.email, role: 'viewer' });
  });

  /** Begins a session in the organisation by a session at the provider. Returns a function that reads the status of `/owner/me`. */
  async function signedIn(at: number, sid?: string) {
    provider.claims = { sub: ann.sub, email: ann.email, email_verified: true, ...(sid !== undefined && { sid }) };
    const browser = new Browser();
    const name = organisations[at]!.id;
    await expectStatus(200, browser.get(`${world.running.baseUrl}/console/oidc/start?organisation=${name}`));
    const address = `${world.running.baseUrl}/owner/me`;
    const headers = { cookie: browser.cookieFor(address) };
    return async () => (await send(address, { headers })).status;
  }
  const logout = (body: string) =>
    send(`${world.running.baseUrl}/console/oidc/logout`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body,
    });
  const honest = (different: Record<string, unknown> = {}) =>
    provider.honest({ sub: ann.sub, jti: crypto.randomUUID(), events: EVENTS, ...different });
  const sent = async (claims: Record<string, unknown>, header: Record<string, unknown> = { typ: 'logout+jwt' }) =>
    await logout(new URLSearchParams({ logout_token: await provider.sign(claims, header) }).toString());

  test('that name a session end the sessions begun by it, in every organisation', async () => {
    const [here, there, other] = [await signedIn(0, one), await signedIn(1, one), await signedIn(0, two)];
    const answer = await sent(honest({ sid: one }));
    expect([answer.status, answer.text, answer.headers.get('cache-control')]).toEqual([200, '', 'no-store']);
    expect([await here(), await there(), await other()]).toEqual([401, 401, 200]);
    for (const [at, signedInTimes] of [2, 1].entries()) {
      const { rows } = (await organisations[at]!.ask('GET', '/owner/audit')).body;
      const mine = rows.slice(0, signedInTimes + 1);
      expect(mine.map(({ reason }: { reason: string }) => reason)).toEqual([
        'owner_sessions_ended',
        ...Array(signedInTimes).fill('owner_signed_in'),
      ]);
      const owner = mine[1].flags.change.by;
      expect(mine[0]).toMatchObject({ detail: ann.email, flags: { change: { by: 'broker', owner } } });
      expect(mine[1]).toMatchObject({
        detail: expect.stringMatching(/^from /),
        flags: { change: { sign_in: 'provider' } },
      });
    }
    // A session that has ended already is not recorded again.
    await sent(honest({ sid: one }));
    const [newest, before] = (await organisations[1]!.ask('GET', '/owner/audit')).body.rows;
    expect([newest.reason, before.reason]).toEqual(['owner_sessions_ended', 'owner_signed_in']);
  });

  test('that name only the person end all their sessions begun before; repeating the token ends no later session', async () => {
    const before = [await signedIn(0, one), await signedIn(1)];
    const claims = honest({ exp: Math.floor(Date.now() / 1000) + 3600 });
    expect((await sent(claims)).status).toBe(200);
    expect(await Promise.all(before.map((me) => me()))).toEqual([401, 401]);
    world.clock.skewMs = 2 * MINUTE_MS;
    const later = await signedIn(0, one);
    expect((await sent(claims)).status).toBe(200);
    expect(await later()).toBe(200);
    expect(await Promise.all(before.map((me) => me()))).toEqual([401, 401]);
    // An older token that arrives after a newer one makes no session valid again.
    const iat = Math.floor(world.running.broker.clock() / 1000);
    expect((await sent(honest({ iat, exp: iat + 3600 }))).status).toBe(200);
    expect(await later()).toBe(401);
    expect((await sent(claims)).status).toBe(200);
    expect(await later()).toBe(401);
  });

  test('that name only a session end the sessions begun by it, in every organisation (Ory Hydra sends these, without exp)', async () => {
    const [here, there, other] = [await signedIn(0, one), await signedIn(1, one), await signedIn(0, two)];
    const claims = honest({ sub: undefined, sid: one, exp: undefined });
    expect((await sent(claims, { typ: 'JWT' })).status).toBe(200);
    expect([await here(), await there(), await other()]).toEqual([401, 401, 200]);
    expect((await sent(honest({ sub: undefined, sid: crypto.randomUUID() }))).status).toBe(200);
    expect(await other()).toBe(200);
  });

  test('that name a person and a session also end earlier sessions without a session id', async () => {
    const [nameless, other] = [await signedIn(0), await signedIn(0, two)];
    const claims = honest({ sid: one, exp: Math.floor(Date.now() / 1000) + 3600 });
    expect((await sent(claims)).status).toBe(200);
    expect([await nameless(), await other()]).toEqual([401, 200]);
    world.clock.skewMs = 2 * MINUTE_MS;
    const later = await signedIn(0);
    expect((await sent(claims)).status).toBe(200);
    expect(await later()).toBe(200);
  });

  test('end bearers of the provider, too', async () => {
    const bearer = async (sid: string) => {
      const token = await provider.sign(provider.honest({ ...ann, email_verified: true, sid }));
      return async () =>
        (await send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } })).status;
    };
    const [first, second] = [await bearer(one), await bearer(two)];
    expect([await first(), await second()]).toEqual([200, 200]);
    await sent(honest({ sid: one }));
    expect([await first(), await second()]).toEqual([401, 200]);
    await sent(honest());
    expect(await second()).toBe(401);
  });

  test('with fractional times are accepted', async () => {
    world.clock.skewMs -= 200_000;
    const me = await signedIn(0);
    world.clock.skewMs = 0;
    const now = provider.clock() / 1000;
    expect((await sent(honest({ iat: now - 200.123_456_7, exp: now + 60.7 }))).status).toBe(200);
    expect(await me()).toBe(401);
  });

  test('with an end, six minutes old, are accepted', async () => {
    const me = await signedIn(0, one);
    const now = Math.floor(Date.now() / 1000);
    expect((await sent(honest({ sid: one, iat: now - 360, exp: now + 60 }))).status).toBe(200);
    expect(await me()).toBe(401);
  });

  test('for a person who is not an owner are accepted, and end nothing', async () => {
    const me = await signedIn(0, one);
    expect((await sent(honest({ sub: 'somebody', sid: one }))).status).toBe(200);
    expect(await me()).toBe(200);
  });

  test.each<[string, Record<string, unknown>, Record<string, unknown>?]>([
    ['for another client', { aud: 'another-app' }],
    ['of another issuer', { iss: 'https://evil.test' }],
    ['whose time is over', { exp: Math.floor(Date.now() / 1000) - 60 }],
    ['without an end, six minutes old', { exp: undefined, iat: Math.floor(Date.now() / 1000) - 360 }],
    ['without the event', { events: undefined }],
    ['with another event', { events: { 'https://schemas.openid.net/secevent/risc/event-type/account-disabled': {} } }],
    ['whose event is no object', { events: { 'http://schemas.openid.net/event/backchannel-logout': true } }],
    ['whose events are null', { events: null }],
    ['whose event is null', { events: { 'http://schemas.openid.net/event/backchannel-logout': null } }],
    ['with a nonce', { nonce: 'n' }],
    ['that name nobody', { sub: undefined, sid: undefined }],
    ['that name nobody, in another form', { sub: undefined, sid: 7 }],
    ['whose person is no text', { sub: 7 }],
    ['of the type of an access token', {}, { typ: 'at+jwt' }],
    ['of the type of our own sessions', {}, { typ: 'svc-owner+jwt' }],
  ])('%s are refused, and end nothing', async (_name, claims, header) => {
    const me = await signedIn(0, one);
    expectEnvelope(await sent(honest({ sid: one, ...claims }), header), 400, 'invalid_request');
    expect(await me()).toBe(200);
  });

  test.each<[string, (lying: LyingProvider) => Promise<string> | string]>([
    ['nothing', () => ''],
    ['JSON', () => JSON.stringify({ logout_token: 'x' })],
    ['another field', () => 'token=x'],
    ['no JWT', () => 'logout_token=x'],
    ['two tokens', async (lying) => `logout_token=${await lying.sign(honest())}&logout_token=x`],
    [
      'a token of another key',
      async (lying) =>
        `logout_token=${await lying.sign(honest(), {}, { ...(await makeSigner()), kid: lying.signer.kid })}`,
    ],
  ])('%s is refused with 400', async (_name, make) => {
    const me = await signedIn(0, one);
    expectEnvelope(await logout(await make(provider)), 400, 'invalid_request');
    expect(await me()).toBe(200);
  });

  test('a form of 20 KB is refused with 413', async () => {
    expectEnvelope(await logout(`logout_token=${'x'.repeat(20_000)}`), 413, 'payload_too_large');
  });

  test('while the provider’s keys cannot be fetched the answer is 502, and a repeated token is accepted', async () => {
    const me = await signedIn(0, one);
    world.clock.skewMs = 10 * MINUTE_MS;
    provider.answers.set('/jwks', (_request, response) => response.writeHead(503).end());
    expectEnvelope(await sent(honest({ sid: one })), 502, 'identity_provider_failed');
    provider.answers.clear();
    world.clock.skewMs += MINUTE_MS;
    expect((await sent(honest({ sid: one }))).status).toBe(200);
    expect(await me()).toBe(401);
  });
});

describe('without an identity provider', () => {
  const world = givenWorld('sqlite');

  test('the logout route does not exist', async () => {
    const answer = await send(`${world.running.baseUrl}/console/oidc/logout`, {
      method: 'POST',
      body: 'logout_token=x',
    });
    expectEnvelope(answer, 404, 'not_found');
  });
});
