/** Sign-in of owners at a real OpenID Connect provider: code flow with PKCE, from the sign-in page to the console. */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { startIdentityProvider } from '../world/servers/identity-provider.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

describe.each(ONE_STORE)(`signing in at an identity provider on %s${postgresNote}`, (store) => {
  let start: string;
  const provider = shared(() => startIdentityProvider());
  const world = givenWorld(store, () => provider.settings);
  beforeAll(async () => {
    await provider.serve(world.running.baseUrl);
    start = `${world.running.baseUrl}/console/oidc/start`;
  });
  const organisation = fresh(() => world.organisation());
  /** Adds a person at the provider, with an address of their own. */
  const person = (email = `p-${crypto.randomUUID().slice(0, 8)}@acme.example`, verified: unknown = true) => {
    const login = `sub-${crypto.randomUUID().slice(0, 8)}`;
    provider.people.set(login, { email, email_verified: verified });
    return { login, email };
  };
  const invite = async (email: string, role: OwnerTable['role'] = 'approver', where = organisation) =>
    (await where.ask('POST', '/owner/owners', { email, role })).body as { id: string };
  const owner = async (id: string) =>
    (await world.db.selectFrom('owners').selectAll().where('id', '=', id).executeTakeFirst())!;
  const me = async (browser: Browser) =>
    await send(`${world.running.baseUrl}/owner/me`, {
      headers: { cookie: browser.cookieFor(`${world.running.baseUrl}/owner/me`) },
    });
  const expectSignedOut = async (browser: Browser, visit: Visit, status: number) => {
    expect([visit.status, visit.headers.get('content-type')], visit.text).toEqual([status, 'text/html; charset=utf-8']);
    expectEnvelope(await me(browser), 401, 'missing_token');
  };

  test('the sign-in options name the provider and the start URL', async () => {
    const { body } = await send(`${world.running.baseUrl}/owner/sign-in-options`, {});
    expect(body).toEqual({ method: 'oidc', start_url: start, provider: new URL(provider.issuer).host });
  });

  test('an invited owner signs in; their account is stored, and identifies them from then on', async () => {
    const ann = person(`Ann-${crypto.randomUUID().slice(0, 8)}@Acme.example`);
    const { id } = await invite(ann.email.toUpperCase());
    const browser = new Browser();
    const visit = await provider.signIn(browser, ann.login, start);
    expect([visit.status, new URL(visit.url).pathname], visit.text).toEqual([200, '/console/oidc/callback']);
    expect(visit.text).toContain('<meta http-equiv="refresh" content="0; url=/console">');
    expect(visit.headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(visit.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    const cookies = visit.headers.getSetCookie();
    expect(cookies).toEqual([
      expect.stringMatching(/^svc_owner_\d+=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/),
      expect.stringMatching(/^svc_oidc_[0-9a-f]{16}=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax$/),
    ]);
    expect((await me(browser)).body).toMatchObject({
      id,
      email: ann.email.toLowerCase(),
      role: 'approver',
      sign_in: 'oidc',
      organisations: [],
    });
    expect((await owner(id)).oidc_subject).toBe(`${provider.issuer} ${ann.login}`);
    expect((await owner(id)).last_sign_in_at).toBeGreaterThan(Date.now() - MINUTE_MS);
    // A changed address at the provider has no effect: the account counts, not the address.
    provider.people.set(ann.login, { email: 'ann-is-married@acme.example', email_verified: false });
    const again = new Browser();
    await provider.signIn(again, ann.login, start);
    expect((await me(again)).body.id).toBe(id);
  });

  test('the authorization request has PKCE with S256, state, nonce and the exact redirect URI', async () => {
    const browser = new Browser();
    browser.stopAt = (url) => url.origin === provider.issuer;
    const { url } = await browser.get(start);
    const { searchParams } = new URL(url);
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: 'broker',
      response_type: 'code',
      redirect_uri: `${world.running.baseUrl}/console/oidc/callback`,
      scope: 'openid email',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
    const [kept] = browser.cookies;
    expect(kept).toMatchObject({ name: expect.stringMatching(/^svc_oidc_[0-9a-f]{16}$/), path: '/' });
    // The values cannot be read from the cookie, and differ each time.
    expect(kept!.value).not.toContain(searchParams.get('state'));
    expect(Buffer.from(kept!.value, 'base64url').toString('latin1')).not.toContain(searchParams.get('nonce'));
    const other = new Browser();
    other.stopAt = browser.stopAt;
    expect((await other.get(start)).url).not.toBe(url);
  });

  test.each([
    ['/console/approvals/1?tab=held', '/console/approvals/1?tab=held'],
    ['/approve/abc', '/approve/abc'],
    ['/oauth/consent/Ab_c-1', '/oauth/consent/Ab_c-1'],
    ['/oauth/authorize?client_id=x', '/console'],
    ['/oauth/consent/../authorize', '/console'],
    ['https://evil.test/', '/console'],
    ['//evil.test/console', '/console'],
    ['/\\evil.test', '/console'],
    ['/console/../owner/audit', '/console'],
    ['/console/%2e%2e/x', '/console'],
    ['/consolex', '/console'],
    ['/owner/audit', '/console'],
    ['/console/sign-in', '/console'],
    ['/console?x="><script>', '/console'],
    ['javascript:alert(1)', '/console'],
    [`/console/${'x'.repeat(600)}`, '/console'],
  ])('a sign-in from %s returns to %s', async (page, expected) => {
    const ann = person();
    await invite(ann.email);
    const visit = await provider.signIn(new Browser(), ann.login, `${start}?page=${encodeURIComponent(page)}`);
    expect(/content="0; url=([^"]*)"/.exec(visit.text)?.[1]).toBe(expected.replace('&', '&#38;'));
    expect(visit.text).not.toContain('evil');
    expect(visit.text).not.toContain('<script');
  });

  test('a person who is not invited learns their identity and whom to ask, and no owner is created', async () => {
    const eve = person('eve@elsewhere.example');
    const before = (await world.db.selectFrom('owners').selectAll().execute()).length;
    const browser = new Browser();
    const visit = await provider.signIn(browser, eve.login, start);
    await expectSignedOut(browser, visit, 403);
    expect(visit.text).toContain('eve@elsewhere.example');
    expect(visit.text).toMatch(/Ask an admin/);
    expect((await world.db.selectFrom('owners').selectAll().execute()).length).toBe(before);
  });

  test.each([[false], ['left out'], [null], ['false'], [1]])(
    'an address that is not verified (%j) is refused',
    async (verified) => {
      const mallory = person(undefined, verified);
      if (verified === 'left out') provider.people.set(mallory.login, { email: mallory.email });
      const { id } = await invite(mallory.email, 'admin');
      const browser = new Browser();
      const visit = await provider.signIn(browser, mallory.login, start);
      await expectSignedOut(browser, visit, 403);
      expect(visit.text).toContain(`signed in ${mallory.email}, and does not say that the address is verified`);
      expect(visit.text).toContain('OIDC_TRUST_EMAIL');
      expect((await owner(id)).oidc_subject).toBeNull();
    },
  );

  test('an account without an address learns what is missing', async () => {
    const { login } = person();
    provider.people.set(login, {});
    const visit = await provider.signIn(new Browser(), login, start);
    await expectSignedOut(new Browser(), visit, 403);
    expect(visit.text).toContain('signed in you without naming an e-mail address');
    expect(visit.text).toContain('the scope email');
  });

  test('email_verified as the string "true" is accepted', async () => {
    const ann = person(undefined, 'true');
    const { id } = await invite(ann.email);
    const browser = new Browser();
    await provider.signIn(browser, ann.login, start);
    expect((await me(browser)).body.id).toBe(id);
  });

  test('addresses are compared without case for A to Z only', async () => {
    const kate = person(`kate-${crypto.randomUUID().slice(0, 8)}@acme.example`);
    const { id } = await invite(kate.email, 'admin');
    // U+212A KELVIN SIGN, whose lower case in Unicode is k.
    const other = person(kate.email.replace('k', '\u212a'));
    const browser = new Browser();
    await expectSignedOut(browser, await provider.signIn(browser, other.login, start), 403);
    expect((await owner(id)).oidc_subject).toBeNull();
    provider.people.set(kate.login, { email: kate.email.toUpperCase(), email_verified: true });
    const herself = new Browser();
    await provider.signIn(herself, kate.login, start);
    expect((await me(herself)).body.id).toBe(id);
  });

  test('the owner of the first start cannot be signed in by an address', async () => {
    const first = await owner(organisation.owner.id);
    expect(first.origin).toBe('first_start');
    const browser = new Browser();
    const visit = await provider.signIn(browser, person(first.email).login, start);
    await expectSignedOut(browser, visit, 403);
    expect((await owner(first.id)).oidc_subject).toBeNull();
  });

  test('an address that now belongs to another account signs nobody in, until an admin forgets the identity', async () => {
    const ann = person();
    const { id } = await invite(ann.email, 'admin');
    await provider.signIn(new Browser(), ann.login, start);
    // Ann has left; her address now belongs to another account.
    const next = person(ann.email);
    const browser = new Browser();
    await expectSignedOut(browser, await provider.signIn(browser, next.login, start), 403);
    expect((await owner(id)).oidc_subject).toBe(`${provider.issuer} ${ann.login}`);
    // Unless an admin forgets the identity.
    await organisation.ask('POST', '/owner/owners', { email: ann.email, role: 'admin', forget_identity: true });
    // Times in tokens are whole seconds.
    world.clock.skewMs += 1_000;
    await provider.signIn(browser, next.login, start);
    expect((await me(browser)).body.id).toBe(id);
  });

  test('a person in two organisations can choose one; the first is the default, and the other one is listed', async () => {
    const second = await world.organisation({ name: `second-${crypto.randomUUID().slice(0, 8)}` });
    const third = await world.organisation();
    const ann = person();
    const first = await invite(ann.email, 'viewer');
    const other = await invite(ann.email, 'admin', second);
    const browser = new Browser();
    await provider.signIn(browser, ann.login, start);
    const { name } = (await second.ask('GET', '/owner/me')).body.organisation;
    expect((await me(browser)).body).toMatchObject({
      id: first.id,
      role: 'viewer',
      organisation: { id: organisation.id },
      organisations: [{ id: second.id, name }],
    });
    // The account is stored only in the organisation that was signed in to.
    expect((await owner(other.id)).oidc_subject).toBeNull();
    for (const choice of [second.id, name]) {
      const chosen = new Browser();
      await provider.signIn(chosen, ann.login, `${start}?organisation=${choice}`);
      expect((await me(chosen)).body).toMatchObject({ id: other.id, role: 'admin', organisation: { id: second.id } });
    }
    for (const choice of [third.id, crypto.randomUUID(), 'x'.repeat(1000)]) {
      const refused = new Browser();
      const visit = await provider.signIn(refused, ann.login, `${start}?organisation=${choice}`);
      await expectSignedOut(refused, visit, 403);
      expect(visit.text).toContain('not of that organisation');
    }
  });

  test('an invitation by an older organisation does not redirect the sign-ins of a person who has signed in elsewhere', async () => {
    const younger = await world.organisation();
    const ann = person();
    const { id } = await invite(ann.email, 'approver', younger);
    await provider.signIn(new Browser(), ann.login, start);
    const bait = await invite(ann.email, 'admin');
    const browser = new Browser();
    await provider.signIn(browser, ann.login, start);
    expect((await me(browser)).body).toMatchObject({ id, organisations: [{ id: organisation.id }] });
    expect((await owner(bait.id)).oidc_subject).toBeNull();
  });

  test('AP-16 a link of another site does not lead into an organisation that the person did not choose without saying so', async () => {
    const second = await world.organisation({ name: `<b>Second</b> ${crypto.randomUUID().slice(0, 8)}` });
    const ann = person();
    await invite(ann.email, 'admin');
    const { id } = await invite(ann.email, 'admin', second);
    const address = `${start}?organisation=${second.id}`;
    const arrive = async (site?: string) => {
      const browser = new Browser();
      await provider.signIn(browser, ann.login, start);
      return await browser.get(
        address,
        site === undefined ? {} : { 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate' },
      );
    };
    for (const site of ['cross-site', 'same-site']) {
      const visit = await expectStatus(200, arrive(site));
      expect(visit.text).not.toContain('http-equiv="refresh"');
      expect(visit.text).toContain('&#60;b&#62;Second&#60;/b&#62;');
      expect(visit.text).toContain(ann.email);
      expect(visit.text).toContain('href="/console"');
    }
    // By the console’s own menu, and by an address that was entered.
    for (const site of ['same-origin', 'none', undefined])
      expect((await arrive(site)).text).toContain('<meta http-equiv="refresh" content="0; url=/console">');
    expect((await owner(id)).last_sign_in_at).not.toBeNull();
  });

  test('an organisation whose name is the id of another one is not signed in to by that id', async () => {
    const second = await world.organisation();
    const ann = person();
    await invite(ann.email, 'viewer');
    const { id } = await invite(ann.email, 'viewer', second);
    const before = await world.db
      .selectFrom('organisations')
      .select('name')
      .where('id', '=', organisation.id)
      .execute();
    await world.db.updateTable('organisations').set({ name: second.id }).where('id', '=', organisation.id).execute();
    onTestFinished(async () => {
      await world.db.updateTable('organisations').set(before[0]!).where('id', '=', organisation.id).execute();
    });
    const browser = new Browser();
    await provider.signIn(browser, ann.login, `${start}?organisation=${second.id}`);
    expect((await me(browser)).body.id).toBe(id);
  });

  test('concurrent sign-ins of one person lead to one owner', async () => {
    const ann = person();
    const { id } = await invite(ann.email);
    const browsers = Array.from({ length: 4 }, () => new Browser());
    const visits = await Promise.all(browsers.map((browser) => provider.signIn(browser, ann.login, start)));
    expect(visits.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    for (const browser of browsers) expect((await me(browser)).body.id).toBe(id);
  });

  describe('AP-16 callbacks that do not match a sign-in of this browser', () => {
    /** Signs in up to the callback, which is not requested. */
    const upToCallback = async (login: string) => {
      const browser = new Browser();
      browser.stopAt = (url) => url.pathname === '/console/oidc/callback';
      const { url } = await provider.signIn(browser, login, start);
      browser.stopAt = undefined;
      expect(new URL(url).searchParams.get('code')).toBeTruthy();
      return { browser, url: new URL(url) };
    };

    test.each<[string, (url: URL) => void]>([
      ['another state', (url) => url.searchParams.set('state', 'x'.repeat(43))],
      ['no state', (url) => url.searchParams.delete('state')],
      ['two states', (url) => url.searchParams.append('state', url.searchParams.get('state')!)],
    ])('%s is refused, and the sign-in can still be completed', async (_name, change) => {
      const ann = person();
      await invite(ann.email);
      const { browser, url } = await upToCallback(ann.login);
      const honest = url.href;
      change(url);
      await expectSignedOut(browser, await browser.get(url.href), 400);
      expect((await browser.get(honest)).status).toBe(200);
    });

    test.each<[string, (url: URL) => void]>([
      ['another issuer (RFC 9207)', (url) => url.searchParams.set('iss', 'https://evil.test')],
      ['the issuer with a slash', (url) => url.searchParams.set('iss', `${url.searchParams.get('iss')}/`)],
      ['no issuer, where the provider always names it', (url) => url.searchParams.delete('iss')],
      ['two issuers', (url) => url.searchParams.append('iss', 'https://evil.test')],
      ['another code', (url) => url.searchParams.set('code', 'x')],
    ])('%s is refused', async (_name, change) => {
      const ann = person();
      await invite(ann.email);
      const { browser, url } = await upToCallback(ann.login);
      change(url);
      await expectSignedOut(browser, await browser.get(url.href), 400);
      expect(browser.cookieFor(url.href)).toBe('');
    });

    test('a callback without the cookie of its sign-in is refused, as with a link that somebody else sent', async () => {
      const mallory = person();
      await invite(mallory.email);
      const { url } = await upToCallback(mallory.login);
      const victim = new Browser();
      await expectSignedOut(victim, await victim.get(url.href), 400);
      // The cookie of another sign-in does not help, either.
      victim.stopAt = (one) => one.origin === provider.issuer;
      await victim.get(start);
      victim.stopAt = undefined;
      await expectSignedOut(victim, await victim.get(url.href), 400);
    });

    test('a repeated callback signs in only once, also with a copied cookie', async () => {
      const ann = person();
      await invite(ann.email);
      const { browser, url } = await upToCallback(ann.login);
      const copy = new Browser();
      copy.cookies = structuredClone(browser.cookies);
      expect((await browser.get(url.href)).status).toBe(200);
      await expectSignedOut(copy, await copy.get(url.href), 400);
      expect((await browser.get(url.href)).status).toBe(400);
    });

    test('a sign-in that takes longer than 10 minutes is refused', async () => {
      const ann = person();
      await invite(ann.email);
      const { browser, url } = await upToCallback(ann.login);
      world.clock.skewMs = 10 * MINUTE_MS + 1;
      await expectSignedOut(browser, await browser.get(url.href), 400);
    });

    test('a cookie that was altered, truncated, or has another content is refused', async () => {
      const ann = person();
      await invite(ann.email);
      const { browser, url } = await upToCallback(ann.login);
      const [kept] = browser.cookies.filter(({ name }) => name.startsWith('svc_oidc_'));
      const flipped = `${kept!.value.slice(0, -2)}${kept!.value.at(-2) === 'A' ? 'B' : 'A'}${kept!.value.at(-1)}`;
      for (const value of [flipped, kept!.value.slice(0, 60), 'x', 'AAAA', `${kept!.value}!`]) {
        const altered = new Browser();
        altered.cookies = [{ ...kept!, value }];
        await expectSignedOut(altered, await altered.get(url.href), 400);
      }
      expect((await browser.get(url.href)).status).toBe(200);
    });

    test('an error of the provider is shown by its code only', async () => {
      const browser = new Browser();
      browser.stopAt = (url) => url.origin === provider.issuer;
      const { url } = await browser.get(start);
      const state = new URL(url).searchParams.get('state')!;
      const query = {
        error: 'access_denied',
        error_description: '<script>owned</script>',
        state,
        iss: provider.issuer,
      };
      const visit = await browser.get(`${world.running.baseUrl}/console/oidc/callback?${new URLSearchParams(query)}`);
      await expectSignedOut(browser, visit, 403);
      expect(visit.text).toContain('access_denied');
      expect(visit.text).not.toContain('owned');
    });
  });

  test('a stray callback does not end pending sign-ins, and several tabs can sign in concurrently', async () => {
    const ann = person();
    await invite(ann.email);
    const browser = new Browser();
    const begin = async () => {
      browser.stopAt = (url) => url.origin === provider.issuer;
      const { url } = await browser.get(start);
      browser.stopAt = undefined;
      return url;
    };
    const [first, second] = [await begin(), await begin()];
    const stray = `${world.running.baseUrl}/console/oidc/callback?code=x&state=y`;
    await expectSignedOut(browser, await browser.get(stray), 400);
    for (const address of [first, second]) {
      const visit = await provider.signIn(browser, ann.login, address);
      expect([visit.status, (await me(browser)).status], visit.text).toEqual([200, 200]);
    }
    // Only the newest four are kept, so that their cookies never exceed the header limit.
    for (let n = 0; n < 9; n++) {
      world.clock.skewMs += 1;
      await begin();
    }
    expect(browser.cookies.filter(({ name }) => name.startsWith('svc_oidc_'))).toHaveLength(4);
  });

  test('signing in ends the browser’s previous session, copies of its cookie included', async () => {
    const [ann, bob] = [person(), person()];
    await invite(ann.email);
    const { id } = await invite(bob.email);
    const browser = new Browser();
    await provider.signIn(browser, ann.login, start);
    const copy = new Browser();
    copy.cookies = structuredClone(browser.cookies);
    browser.cookies = browser.cookies.filter(({ name }) => name.startsWith('svc_owner_'));
    await provider.signIn(browser, bob.login, start);
    expect((await me(browser)).body.id).toBe(id);
    expectEnvelope(await me(copy), 401, 'token_expired');
  });

  test('a program gets an error as JSON in place of a page', async () => {
    expectEnvelope(await send(`${world.running.baseUrl}/console/oidc/callback?code=x`, {}), 400, 'invalid_request');
  });

  test('a sign-in that cannot be recorded in the audit fails, with an explanation on a page', async () => {
    const ann = person();
    const { id } = await invite(ann.email);
    const repair = await refuseAuditRows(world);
    const browser = new Browser();
    try {
      const visit = await provider.signIn(browser, ann.login, start);
      await expectSignedOut(browser, visit, 503);
      expect(visit.text).toContain('could not be recorded');
    } finally {
      await repair();
    }
    expect((await owner(id)).last_sign_in_at).toBeNull();
    expect((await provider.signIn(new Browser(), ann.login, start)).status).toBe(200);
  });

  test('sign-in links are neither made nor accepted; the command line’s own session still works', async () => {
    const local = (path: string) =>
      send(
        world.running.baseUrl + path,
        jsonPost(
          { email: organisation.owner.email },
          { authorization: `Bearer ${world.running.services.local.token.reveal()}` },
        ),
      );
    const link = await local('/owner/link');
    expect(link.body).toEqual({
      url: `${world.running.baseUrl}/console/sign-in`,
      expires_at: null,
      email: organisation.owner.email,
      sign_in: 'oidc',
      provider: new URL(provider.issuer).host,
    });
    expect(await world.db.selectFrom('one_time_tokens').selectAll().execute()).toEqual([]);
    const answer = await send(`${world.running.baseUrl}/owner/sign-in`, jsonPost({ token: `sgn_${'A'.repeat(43)}` }));
    expectEnvelope(answer, 403, 'forbidden');
    expect(answer.body.detail).toContain(new URL(provider.issuer).host);
    const { token } = (await local('/owner/token')).body;
    const mine = await send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
    expect(mine.body).toMatchObject({ sign_in: 'local', organisations: [] });
  });

  test('signing out and removing the owner end a session from the provider like any other', async () => {
    const ann = person();
    const { id } = await invite(ann.email);
    const browser = new Browser();
    await provider.signIn(browser, ann.login, start);
    const cookie = browser.cookieFor(`${world.running.baseUrl}/owner/me`);
    await send(`${world.running.baseUrl}/owner/sign-out`, { method: 'POST', headers: { cookie, 'x-svc-csrf': '1' } });
    expectEnvelope(await me(browser), 401, 'token_expired');
    await provider.signIn(browser, ann.login, start);
    expect((await me(browser)).status).toBe(200);
    expect((await organisation.ask('DELETE', `/owner/owners/${id}`)).status).toBe(200);
    expectEnvelope(await me(browser), 401, 'invalid_token');
    expect((await provider.signIn(new Browser(), ann.login, start)).status).toBe(403);
  });

  test('rotated keys of the provider are fetched when first used, at most every 30 seconds', async () => {
    const ann = person();
    await invite(ann.email);
    expect((await provider.signIn(new Browser(), ann.login, start)).status).toBe(200);
    const asked = () => provider.seen.filter((path) => path === '/jwks').length;
    const before = asked();
    world.clock.skewMs = 31_000;
    await provider.rotate();
    expect((await provider.signIn(new Browser(), ann.login, start)).status).toBe(200);
    expect(asked()).toBe(before + 1);
    await provider.rotate();
    const visit = await provider.signIn(new Browser(), ann.login, start);
    expect([visit.status, asked()]).toEqual([502, before + 1]);
    expect(visit.text).toContain('kid is not among');
    world.clock.skewMs = 62_000;
    expect((await provider.signIn(new Browser(), ann.login, start)).status).toBe(200);
    expect(asked()).toBe(before + 2);
  });
});

describe.each(ONE_STORE)(`a provider whose addresses are trusted, on %s${postgresNote}`, (store) => {
  const provider = shared(() => startIdentityProvider());
  const world = givenWorld(store, () => ({ ...provider.settings, OIDC_TRUST_EMAIL: 'on' }));
  beforeAll(() => provider.serve(world.running.baseUrl));
  const organisation = shared(() => world.organisation());

  const signIn = async (claims: { email?: string; email_verified?: unknown }) => {
    const login = `sub-${crypto.randomUUID().slice(0, 8)}`;
    provider.people.set(login, claims);
    const browser = new Browser();
    const visit = await provider.signIn(browser, login, `${world.running.baseUrl}/console/oidc/start`);
    const owner = `${world.running.baseUrl}/owner/me`;
    return { visit, me: await send(owner, { headers: { cookie: browser.cookieFor(owner) } }) };
  };

  test.each([[false], [undefined], [true]])(
    'an invited address counts as verified whatever the claim (%j), for the first account that has it',
    async (verified) => {
      const email = `p-${crypto.randomUUID().slice(0, 8)}@acme.example`;
      const { id } = (await organisation.ask('POST', '/owner/owners', { email, role: 'approver' })).body;
      const claims = { email, ...(verified !== undefined && { email_verified: verified }) };
      expect((await signIn(claims)).me.body).toMatchObject({ id, email, sign_in: 'oidc' });
      const second = await signIn(claims);
      expect([second.visit.status, second.me.status]).toEqual([403, 401]);
    },
  );

  test('a person who is not invited, or has no address, is still refused', async () => {
    expect((await signIn({ email: 'eve@elsewhere.example' })).visit.text).toContain(
      'who is no owner here. Ask an admin of your organisation to add exactly this address on the page Team',
    );
    expect((await signIn({})).visit.text).toContain('without naming an e-mail address');
  });
});
