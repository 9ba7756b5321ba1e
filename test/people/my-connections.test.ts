/** People see and withdraw what they gave: in the browser that gave it, or signed in; and never anything of others. */

import { describe, expect, test } from 'vitest';
import { cookieNameAt } from '../../broker/auth/session-cookie.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { Browser, type Visit } from '../world/browser/browser.ts';
import {
  agentOfPeople,
  authorise,
  confirmAll,
  consentAsserted,
  onward,
  outlivePerson,
  start,
} from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');
const BOB = slack('U-BOB');

describe.each(ONE_STORE)(`what a person gave on %s${postgresNote}`, (store) => {
  const { server, issuer, world, organisation, agent, act } = givenPeople(store);
  const ann = async () => ({ assertion: await issuer.assertion('ann') });
  const mine = () => `${world.running.baseUrl}/me/connections`;
  const signInAt = () =>
    `${mine()}/sign-in?${new URLSearchParams({ organisation: organisation.id, issuer: issuer.issuer })}`;
  const shown = async (browser: Browser) => await browser.get(mine());
  const withdrawal = ({ text }: Visit): string => {
    const [, path = ''] = /action="(\/me\/connections\/[0-9a-f-]{36}\/withdraw)"/.exec(text) ?? [];
    expect(path, text).not.toBe('');
    return world.running.baseUrl + path;
  };
  const gave = async (caller: object, login: string, browser = new Browser()): Promise<Browser> => {
    const done = await consentAsserted(server, (await act(caller)).body.consent_url, login, browser);
    expect(done.text).toContain('See what you gave');
    await confirmAll(organisation);
    return browser;
  };
  const gaveVerified = async (browser: Browser): Promise<void> => {
    const { consent_url } = (await act(await ann())).body;
    const signedIn = await issuer.signIn(browser, 'ann', await start(browser, consent_url));
    await authorise(server, browser, 'ann', onward(signedIn));
    expect((await browser.post(`${consent_url}/keep`, {})).status).toBe(200);
  };
  const signIn = async (browser: Browser, login: string): Promise<Visit> =>
    await issuer.signIn(browser, login, onward(await browser.post(signInAt(), {})));

  test('the browser that consented sees the account, the person, the scopes and the agents', async () => {
    const done = await consentAsserted(server, (await act(ANN)).body.consent_url, 'ann');
    const [, link] = /href="(\/me\/connections[^"]*)"/.exec(done.text) ?? [];
    expect(link).toBe(`/me/connections?organisation=${organisation.id}`);
    const browser = new Browser();
    await consentAsserted(server, (await act(BOB)).body.consent_url, 'bob', browser);
    expect((await organisation.ask('GET', '/owner/people?state=unconfirmed')).body.tokens).toHaveLength(2);
    const waiting = await shown(browser);
    expect(waiting.text).toContain('An owner of the organisation has to confirm it first');
    await confirmAll(organisation);
    const { text, headers } = await shown(browser);
    for (const said of [
      '>Docs<',
      'bob@docs.example',
      'In use',
      'openid',
      'docs.read',
      'docs:read, docs:write',
      'never',
    ])
      expect(text).toContain(said);
    expect(text).not.toContain('ann@docs.example');
    expect(headers.get('content-security-policy')).toContain("default-src 'none'; style-src 'self'");
    expect(headers.get('cache-control')).toContain('no-store');
  });

  test('names of agents, accounts and organisations are escaped', async () => {
    await organisation.agent({
      name: '<img src=x onerror=alert(1)>',
      policy: await organisation.policy([{ effect: 'allow' }] as never),
      grants: { docs: { scopeList: ['docs:read'] } },
    });
    const browser = await gave(ANN, 'ann');
    const { text } = await shown(browser);
    expect(text).not.toContain('<img src=x');
    expect(text).toContain('&#60;img src=x onerror=alert(1)&#62;');
  });

  test('invisible and bidirectional characters in a name are shown by number, on the consent page, too', async () => {
    const made = await agent.post('/v1/agents/children', {
      name: 'bot\u202ekcalS\u200b',
      grants: [{ platform: 'docs', scopes: ['docs:read'] }],
    });
    expect(made.status, made.text).toBe(201);
    const started = await send(
      `${world.running.baseUrl}/v1/consent/caller/start`,
      jsonPost({ platform: 'docs', caller: ANN }, { authorization: `Bearer ${made.body.bearer_token}` }),
    );
    expect(started.status, started.text).toBe(202);
    const { text } = await new Browser().get(started.body.consent_url);
    expect(text).toContain('The agent “bot⟦U+202E⟧kcalS⟦U+200B⟧” of the organisation');
    await organisation.agent({
      name: 'bot\u2066',
      policy: await organisation.policy([{ effect: 'allow' }] as never),
      grants: { docs: { scopeList: ['docs:read'] } },
    });
    expect((await shown(await gave(ANN, 'ann'))).text).toContain('bot⟦U+2066⟧');
  });

  test('the time of last use is collected with each call, and written later in a batch', async () => {
    const browser = await gave(ANN, 'ann');
    expect((await act(ANN)).status).toBe(200);
    await world.running.services.tokenUses.write();
    const rows = () =>
      world.db
        .selectFrom('person_tokens')
        .select('last_used_at')
        .where('organisation_id', '=', organisation.id)
        .execute();
    const [first] = await rows();
    expect(first?.last_used_at).toBeGreaterThan(0);
    expect((await shown(browser)).text).not.toContain('never');
    // Not written again within some minutes.
    world.clock.skewMs = 60_000;
    await act(ANN);
    await world.running.services.tokenUses.write();
    expect(await rows()).toEqual([first]);
    world.clock.skewMs = 10 * 60_000;
    await act(ANN);
    await world.running.services.tokenUses.write();
    expect((await rows())[0]?.last_used_at).toBeGreaterThanOrEqual(Number(first?.last_used_at) + 9 * 60_000);
  });

  test('withdrawing ends the token here immediately, revokes it at the platform, is recorded, and the next call asks for a consent', async () => {
    const browser = await gave(ANN, 'ann');
    await gave(BOB, 'bob');
    expect((await act(ANN)).body.data.who).toBe('ann');
    const token = server.bearers.at(-1);
    const done = await browser.post(withdrawal(await shown(browser)), {});
    expect([done.status, done.text]).toEqual([200, expect.stringContaining('were revoked at')]);
    const refused = await act(ANN);
    expect([refused.status, refused.body.reason]).toEqual([412, 'not_consented']);
    expect(refused.body.consent_url).toBeDefined();
    await expectStatus(401, fetch(`${server.issuer}/api/items`, { headers: { authorization: `Bearer ${token}` } }));
    expect((await shown(browser)).text).toContain('have no access to any of your accounts');
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=50')).body;
    const [event] = rows.filter(({ reason }: { reason: string }) => reason === 'person_withdrew');
    expect(JSON.stringify(event)).not.toContain('U-ANN');
    expect((await act(BOB)).body.data.who).toBe('bob');
  });

  test('withdrawing works while the authorization server is down, and the page says so', async () => {
    const browser = await gave(ANN, 'ann');
    const form = withdrawal(await shown(browser));
    await server.down();
    const done = await browser.post(form, {}).finally(() => server.up());
    expect([done.status, done.text]).toEqual([200, expect.stringContaining('could not be revoked at')]);
    expect((await act(ANN)).status).toBe(412);
  });

  test('when a token is withdrawn during a call, the call ends, and the next one is refused', async () => {
    const browser = await gave(ANN, 'ann');
    await outlivePerson(world, organisation, 'ann@docs.example');
    const form = withdrawal(await shown(browser));
    server.slowMs = 500;
    const before = server.seen.length;
    const call = act(ANN);
    while (!server.seen.slice(before).includes('POST /token')) await new Promise((later) => setTimeout(later, 5));
    expect((await browser.post(form, {})).status).toBe(200);
    const ended = await call;
    expect([200, 409, 412, 502, 503]).toContain(ended.status);
    const next = await act(ANN);
    expect([next.status, next.body.reason]).toEqual([412, 'not_consented']);
    // The token from the concurrent refresh is revoked, too.
    const used = await fetch(`${server.issuer}/api/items`, {
      headers: { authorization: `Bearer ${server.given.access.at(-1)}` },
    });
    expect(used.status).toBe(401);
  });

  test('an asserted person sees what this browser gave, and nothing else of that person', async () => {
    // Two agents have links for Ann; the person who opens one of them gives their own account, and sees nothing of Ann's.
    const links = [await act(ANN), await act(ANN, {}, await agentOfPeople(organisation))];
    const [eves, anns] = [new Browser(), new Browser()];
    await consentAsserted(server, links[0]?.body.consent_url, 'eve', eves);
    await consentAsserted(server, links[1]?.body.consent_url, 'ann', anns);
    const [seen, own] = [await shown(eves), await shown(anns)];
    expect([seen.text.includes('eve@docs.example'), seen.text.includes('ann@docs.example')]).toEqual([true, false]);
    expect([own.text.includes('eve@docs.example'), own.text.includes('ann@docs.example')]).toEqual([false, true]);
    expect((await eves.post(withdrawal(own), {})).status).toBe(404);
    expect((await eves.post(withdrawal(seen), {})).status).toBe(200);
    const left = (await organisation.ask('GET', '/owner/people?state=unconfirmed')).body.tokens;
    expect(left.map(({ account }: { account: string }) => account)).toEqual(['ann@docs.example']);
    await confirmAll(organisation);
    expect((await act(ANN)).body.data.who).toBe('ann');
  });

  test('a person who signs in sees everything they gave, in any browser, and nothing of others', async () => {
    await gaveVerified(new Browser());
    const elsewhere = new Browser();
    expect((await signIn(elsewhere, 'ann')).text).toContain('You are signed in');
    const { text } = await shown(elsewhere);
    expect(text).toContain('ann@docs.example');
    const bobs = new Browser();
    expect((await signIn(bobs, 'bob')).text).toContain('have no access to any of your accounts');
    const page = await bobs.get(`${mine()}?organisation=${organisation.id}`);
    expect(page.text).toContain(`Sign in at ${new URL(issuer.issuer).host}`);
    expect(page.text).not.toContain('docs.example');
    const other = await world.organisation();
    expect((await bobs.get(`${mine()}?organisation=${other.id}`)).text).toContain('not known here');
    expect((await bobs.post(withdrawal(await shown(elsewhere)), {})).status).toBe(403);
    expect((await elsewhere.post(withdrawal(await shown(elsewhere)), {})).status).toBe(200);
    expect((await act(await ann())).status).toBe(412);
  });

  test('the callback of a sign-in counts in the browser that began it, and once', async () => {
    await gaveVerified(new Browser());
    const [one, other] = [new Browser(), new Browser()];
    one.stopAt = (url) => url.pathname === '/me/consent/signed-in';
    const stopped = await signIn(one, 'ann');
    expect((await other.get(stopped.url)).status).toBe(400);
    expect((await shown(other)).text).not.toContain('ann@docs.example');
    one.stopAt = undefined;
    expect((await one.get(stopped.url)).text).toContain('You are signed in');
    expect((await one.get(stopped.url)).status).toBe(400);
  });

  test('the cookie is hidden from scripts and other sites, replaced at each sign-in, and expires', async () => {
    const browser = new Browser();
    await gaveVerified(browser);
    const before = browser.cookieFor(mine());
    await signIn(browser, 'ann');
    const after = browser.cookieFor(mine());
    const value = (text: string) => /svc_person_\d+=([^;]+)/.exec(text)?.[1];
    expect(value(after)).toBeDefined();
    expect(value(after)).not.toBe(value(before));
    const withOld = await send(mine(), {
      headers: { cookie: `${cookieNameAt(world.running.baseUrl, 'svc_person')}=${value(before)}`, accept: 'text/html' },
    });
    expect(withOld.text).not.toContain('ann@docs.example');
    world.clock.skewMs = 61 * 60_000;
    expect((await shown(browser)).text).not.toContain('ann@docs.example');
    world.clock.skewMs = 0;
    expect((await browser.post(`${mine()}/leave`, {})).text).toContain('no longer shows your accounts');
    const left = await send(mine(), { headers: { cookie: after, accept: 'text/html' } });
    expect(left.text).not.toContain('ann@docs.example');
    const signedIn = await send(`${world.running.baseUrl}/me/connections/leave`, { method: 'POST' });
    expect(signedIn.headers.getSetCookie().join()).toMatch(
      /svc_person_\d+=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax/,
    );
  });

  test('a form of another site can neither withdraw nor sign in, and a consent token is not accepted as a session', async () => {
    const browser = await gave(ANN, 'ann');
    const form = withdrawal(await shown(browser));
    for (const url of [form, signInAt(), `${mine()}/leave`]) {
      const foreign = await send(url, {
        method: 'POST',
        headers: { cookie: browser.cookieFor(url), origin: 'https://evil.example', accept: 'text/html' },
      });
      expect(foreign.status).toBe(403);
    }
    expect((await act(ANN)).status).toBe(200);
    const token = (await act(BOB)).body.consent_token;
    const tried = await send(mine(), {
      headers: { cookie: `${cookieNameAt(world.running.baseUrl, 'svc_person')}=${token}`, accept: 'text/html' },
    });
    expect(tried.text).toContain('not known here');
    expect(tried.text).not.toContain('docs.example');
  });
});
