/** Passkeys and sign-in links outlive a session, so changing them needs more than a session: a recent sign-in, or a passkey of the owner. */
import { describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { RECENT_SIGN_IN_SECONDS } from '../../broker/auth/recent-sign-in.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, jsonPost, jsonRequest, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { assertion, enrol, post, registerFinish } from '../world/passkeys.ts';
import { startLyingProvider } from '../world/servers/lying-provider.ts';
import { Authenticator } from '../world/software-authenticator.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

const ROOT = '/v1/approvals/passkeys';
const ASSERT = '/owner/passkeys/assert';

describe.each(STORES)(`changing passkeys on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.organisation());

  const made = () => new Authenticator(world.running.baseUrl);
  /** Sends requests with the session of an owner who signed in this long ago. */
  const later = async (ms: number) => {
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    world.clock.skewMs += ms;
    return (method: string, path: string, body?: unknown): Promise<Answer> =>
      send(world.running.baseUrl + path, jsonRequest(method, body, { authorization: `Bearer ${token}` }));
  };
  const unattended = () => later(RECENT_SIGN_IN_SECONDS * 1000);
  const own = async (by?: OwnerTable) =>
    (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys as { id: string; status: string }[];
  /** Returns the assertion of a passkey for this purpose. */
  const confirm = async (key: Authenticator, what: object, how?: Parameters<Authenticator['get']>[1]) => {
    const begun = await expectStatus(200, post(world, `${ASSERT}/begin`, what));
    return key.get(begun.body, how);
  };
  const toAdd = (key: Authenticator, how?: Parameters<Authenticator['get']>[1]) =>
    confirm(key, { purpose: 'add-passkey' }, how);
  const toRemove = (key: Authenticator, id: string) =>
    confirm(key, { purpose: 'remove-passkey', passkey_id: id.toUpperCase() });
  function expectAskedAgain(answer: Answer): void {
    expectEnvelope(answer, 403, 'reauthentication_required');
    expect(answer.body.max_age_seconds).toBe(600);
    expect(answer.body.detail).toContain('within the last 10 minutes');
  }

  test('a session whose sign-in is older than 10 minutes cannot add a passkey, neither the first nor a further one', async () => {
    const first = await unattended();
    expectAskedAgain(await first('POST', `${ROOT}/register/begin`));
    expectAskedAgain(await first('POST', `${ROOT}/register/begin`, {}));
    // A new sign-in is enough; it does not need a lost passkey.
    await enrol(world, organisation);
    const further = await unattended();
    expectAskedAgain(await further('POST', `${ROOT}/register/begin`));
    await enrol(world, organisation, { name: 'New phone' });
    expect(await own()).toHaveLength(2);
  });

  test('a session just below 10 minutes can, and has the 5 minutes of the challenge to finish', async () => {
    const ask = await later(RECENT_SIGN_IN_SECONDS * 1000 - 5_000);
    const begun = await expectStatus(200, ask('POST', `${ROOT}/register/begin`));
    world.clock.skewMs += 4 * MINUTE_MS;
    const response = made().create(begun.body);
    await expectStatus(200, ask('POST', `${ROOT}/register/finish`, { response, device_name: 'Phone' }));
  });

  test('an assertion by the owner’s passkey stands in for a recent sign-in, once', async () => {
    const key = await enrol(world, organisation);
    const ask = await unattended();
    const proof = { assertion: await toAdd(key) };
    const begun = await expectStatus(200, ask('POST', `${ROOT}/register/begin`, proof));
    const response = made().create(begun.body);
    expect((await ask('POST', `${ROOT}/register/finish`, { response, device_name: 'Key' })).status).toBe(200);
    expect(await own()).toHaveLength(2);
    expectEnvelope(await ask('POST', `${ROOT}/register/begin`, proof), 410, 'challenge_expired');
  });

  test('an assertion for another purpose, or of another owner, is refused', async () => {
    const [key, colleague] = [await enrol(world, organisation), await organisation.addOwner('approver')];
    const theirs = await enrol(world, organisation, { by: colleague });
    const [{ id } = { id: '' }] = await own();
    const ask = await unattended();
    const refused = async (proof: unknown, why: string) => {
      const answer = await ask('POST', `${ROOT}/register/begin`, { assertion: proof });
      expectEnvelope(answer, 400, 'verification_failed');
      expect(answer.body.detail).toContain(why);
    };
    await refused(await assertion(world, 'sign-in', key), 'not one for adding a passkey');
    await refused(await toRemove(key, id), 'not one for adding a passkey');
    await refused(await toAdd(theirs), 'does not belong to the person who is signed in');
    await refused(await toAdd(key, { uv: false }), 'has to verify you');
    await refused(await toAdd(made()), 'The passkey could not be verified');
    // A sent assertion has to be valid even with a recent sign-in; and one for adding does not sign in.
    const wrong = { assertion: await toAdd(theirs) };
    expectEnvelope(await organisation.ask('POST', `${ROOT}/register/begin`, wrong), 400, 'verification_failed');
    const signIn = { purpose: 'sign-in', response: await toAdd(key) };
    expectEnvelope(await post(world, `${ASSERT}/finish`, signIn), 400, 'verification_failed');
    expect(await own()).toHaveLength(1);
    expect(await own(colleague)).toHaveLength(1);
    expect((await ask('POST', `${ROOT}/register/begin`, { assertion: await toAdd(key) })).status).toBe(200);
  });

  test('AP-11 an assertion by a copied passkey is refused, and the passkey is disabled', async () => {
    const key = await enrol(world, organisation);
    const ask = await unattended();
    expect((await ask('POST', `${ROOT}/register/begin`, { assertion: await toAdd(key) })).status).toBe(200);
    const copied = { assertion: await toAdd(key, { counter: 1 }) };
    expectEnvelope(await ask('POST', `${ROOT}/register/begin`, copied), 400, 'counter_regression');
    expect(await own()).toMatchObject([{ status: 'disabled' }]);
    expectAskedAgain(await ask('POST', `${ROOT}/register/begin`));
  });

  test('removing a passkey needs the same; an assertion removes only the passkey it is for', async () => {
    const key = await enrol(world, organisation);
    await enrol(world, organisation);
    const [first, second] = (await own()).map(({ id }) => id);
    const ask = await unattended();
    const remove = (id: string, body?: object) => ask('DELETE', `/owner/passkeys/${id}`, body);
    expectAskedAgain(await remove(second!));
    expectEnvelope(await remove(second!, { assertion: await toRemove(key, first!) }), 400, 'verification_failed');
    expectEnvelope(await remove(second!, { assertion: await toAdd(key) }), 400, 'verification_failed');
    expectEnvelope(await remove(second!, { assertion: {} }), 400, 'invalid_request');
    expect((await remove(second!, { assertion: await toRemove(key, second!) })).body).toEqual({
      id: second,
      removed: true,
    });
    // A passkey can confirm its own removal.
    expect((await remove(first!, { assertion: await toRemove(key, first!) })).status).toBe(200);
    expect(await own()).toEqual([]);
  });

  test('a sign-in link, whose session counts as a recent sign-in, can be made only after a recent sign-in', async () => {
    const colleague = await organisation.addOwner('approver');
    const ask = await unattended();
    for (const { id } of [colleague, organisation.owner]) {
      expectAskedAgain(await ask('POST', `/owner/owners/${id}/link`));
      expect((await organisation.ask('POST', `/owner/owners/${id}/link`)).status).toBe(200);
    }
  });
});

describe('changing passkeys where owners sign in at an identity provider', () => {
  const provider = shared(() => startLyingProvider());
  const world = givenWorld('sqlite', () => provider.settings);
  const organisation = fresh(async () => {
    provider.beHonest();
    const made = await world.organisation();
    const email = `p-${crypto.randomUUID()}@acme.example`;
    await made.ask('POST', '/owner/owners', { email, role: 'approver' });
    provider.claims = { sub: `sub-${email}`, email, email_verified: true };
    return made;
  });

  const nowSeconds = () => Math.floor(Date.now() / 1000);
  const begin = (headers: Record<string, string>) =>
    send(`${world.running.baseUrl}${ROOT}/register/begin`, { method: 'POST', headers });
  /** Signs in with a browser; `seen`: the parameters sent to the provider. */
  const signIn = async (claims: Record<string, unknown>, query = '') => {
    provider.claims = { ...provider.claims, ...claims };
    const browser = new Browser();
    const start = `${world.running.baseUrl}/console/oidc/start${query}`;
    expect((await browser.get(start)).status).toBe(200);
    const asked = new URL(browser.seen.find((url) => url.startsWith(`${provider.issuer}/auth`))!).searchParams;
    const cookie = browser.cookieFor(world.running.baseUrl);
    return { asked, begin: () => begin({ cookie, 'x-svc-csrf': '1' }) };
  };

  test('a sign-in from an existing session of the provider is as old as that session', async () => {
    const old = await signIn({ auth_time: nowSeconds() - RECENT_SIGN_IN_SECONDS - 5 });
    expect([old.asked.get('prompt'), old.asked.get('max_age')]).toEqual([null, null]);
    expectEnvelope(await old.begin(), 403, 'reauthentication_required');
    const recent = await signIn({ auth_time: nowSeconds() - 60 });
    expect((await recent.begin()).status).toBe(200);
    // A provider's clock that is ahead does not make it newer than the sign-in here.
    const future = await signIn({ auth_time: nowSeconds() + 3600 });
    expect((await future.begin()).status).toBe(200);
    world.clock.skewMs = RECENT_SIGN_IN_SECONDS * 1000 + 5_000;
    expectEnvelope(await future.begin(), 403, 'reauthentication_required');
  });

  test('for a provider that reports no auth_time, a sign-in counts if reauthentication was requested', async () => {
    const silent = await signIn({ auth_time: undefined });
    expectEnvelope(await silent.begin(), 403, 'reauthentication_required');
    const again = await signIn({ auth_time: undefined }, '?reauthenticate=1');
    expect([again.asked.get('prompt'), again.asked.get('max_age')]).toEqual(['login', '600']);
    expect((await again.begin()).status).toBe(200);
    world.clock.skewMs = RECENT_SIGN_IN_SECONDS * 1000 + 5_000;
    expectEnvelope(await again.begin(), 403, 'reauthentication_required');
  });

  test('an owner in several organisations stays in the one of the session', async () => {
    const other = await world.organisation();
    await other.ask('POST', '/owner/owners', { email: provider.claims.email, role: 'approver' });
    const browser = new Browser();
    const { baseUrl } = world.running;
    for (const { id } of [organisation, other]) {
      await browser.get(`${baseUrl}/console/oidc/start?organisation=${id}`);
      await browser.get(`${baseUrl}/console/oidc/start?reauthenticate=1&page=/console/passkeys`);
      const me = await send(`${baseUrl}/owner/me`, { headers: { cookie: browser.cookieFor(baseUrl) } });
      expect(me.body.organisation.id).toBe(id);
    }
  });

  test('a provider that reports that it did not authenticate again is believed', async () => {
    const old = await signIn({ auth_time: nowSeconds() - 3600 }, '?reauthenticate=1');
    expectEnvelope(await old.begin(), 403, 'reauthentication_required');
  });

  test('a provider’s bearer is as old as the sign-in that it names, else as the bearer itself', async () => {
    const bearer = async (different: Record<string, unknown>) =>
      begin({ authorization: `Bearer ${await provider.sign(provider.honest({ ...provider.claims, ...different }))}` });
    const old = nowSeconds() - RECENT_SIGN_IN_SECONDS - 5;
    expectEnvelope(await bearer({ auth_time: old }), 403, 'reauthentication_required');
    expectEnvelope(await bearer({ iat: old, exp: nowSeconds() + 300 }), 403, 'reauthentication_required');
    expect((await bearer({ auth_time: nowSeconds() - 60 })).status).toBe(200);
    expect((await bearer({})).status).toBe(200);
  });

  test('a passkey, which cannot sign in there, confirms within an existing session', async () => {
    const { asked: _, ...recent } = await signIn({ auth_time: nowSeconds() });
    const key = new Authenticator(world.running.baseUrl);
    const cookieSession = await signIn({ auth_time: nowSeconds() - 3600 });
    expectEnvelope(await cookieSession.begin(), 403, 'reauthentication_required');
    const response = key.create((await recent.begin()).body);
    const { owners } = (await organisation.ask('GET', '/owner/owners')).body;
    const ann = owners.find(({ email }: { email: string }) => email === provider.claims.email);
    const asAnn = { ...organisation.owner, id: ann.id };
    expect((await registerFinish(organisation, { response, device_name: 'Key' }, asAnn)).status).toBe(200);
    const options = await expectStatus(200, post(world, `${ASSERT}/begin`, { purpose: 'add-passkey' }));
    const old = await provider.sign(provider.honest({ ...provider.claims, auth_time: nowSeconds() - 3600 }));
    const confirmed = await send(
      `${world.running.baseUrl}${ROOT}/register/begin`,
      jsonPost({ assertion: key.get(options.body) }, { authorization: `Bearer ${old}` }),
    );
    expect(confirmed.status, confirmed.text).toBe(200);
  });
});
