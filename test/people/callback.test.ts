/** Callbacks of the platform with another issuer, code or state, repeated, or in another browser, are refused. */
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { browserOf } from '../world/browser/connecting.ts';
import { govern } from '../world/docs-platform.ts';
import { authorise, confirmAll, start } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');
const BOB = slack('U-BOB');

describe.each(ONE_STORE)(`the callback from the platform on %s${postgresNote}`, (store) => {
  const { server, world, organisation, agent, act, who, document } = givenPeople(store);
  const callback = () => `/console/connected/${organisation.id}`;
  let issued: number;
  beforeEach(() => {
    issued = server.given.access.length;
    server.seen.length = 0;
  });

  /** A person who has consented at the platform, and whose browser has the callback URL but has not opened it. */
  async function onTheWayBack(caller: object, login: string) {
    const url: string = (await act(caller)).body.consent_url;
    const browser = new Browser();
    browser.stopAt = ({ origin, pathname }) => origin === world.running.baseUrl && pathname === callback();
    const back = new URL((await authorise(server, browser, login, await start(browser, url))).url);
    browser.stopAt = undefined;
    expect([back.pathname, back.searchParams.get('iss')]).toEqual([callback(), server.issuer]);
    return { url, browser, back };
  }
  /** Checks that no token was requested, or none issued, and that nothing can be kept. */
  async function nothingCame(visit: Visit, { url, browser }: { url: string; browser: Browser }, asked = false) {
    expect(visit.status, visit.text).toBeGreaterThanOrEqual(400);
    expect(visit.text).not.toContain('Use the account');
    expect(server.seen.filter((path) => path === 'POST /token')).toHaveLength(asked ? 1 : 0);
    expect(server.given.access).toHaveLength(issued);
    expect((await browser.post(`${url}/keep`, {})).status).toBe(409);
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toEqual([]);
    expect((await act(ANN)).body.reason).toBe('not_consented');
  }
  const changed = (back: URL, change: (query: URLSearchParams) => void) => {
    const other = new URL(back);
    change(other.searchParams);
    return other.href;
  };

  test.each<[string, (query: URLSearchParams) => void]>([
    ['another issuer’s name (RFC 9207)', (query) => query.set('iss', 'https://id.example')],
    ['a name that is nearly the issuer’s', (query) => query.set('iss', `${server.issuer}/`)],
    ['no issuer’s name, which the server says that it sends', (query) => query.delete('iss')],
    ['two issuers’ names', (query) => query.append('iss', 'https://id.example')],
    ['two codes', (query) => query.append('code', 'made-up')],
    ['an error beside', (query) => query.set('error', 'access_denied')],
    ['no code', (query) => query.delete('code')],
  ])('with %s is refused, and the code is not redeemed', async (_what, change) => {
    const ann = await onTheWayBack(ANN, 'ann');
    await nothingCame(await ann.browser.get(changed(ann.back, change)), ann);
  });

  test('with somebody else’s code fails, because that belongs to another verifier (PKCE)', async () => {
    const [ann, bob] = [await onTheWayBack(ANN, 'ann'), await onTheWayBack(BOB, 'bob')];
    const stolen = bob.back.searchParams.get('code')!;
    const visit = await ann.browser.get(changed(ann.back, (query) => query.set('code', stolen)));
    await nothingCame(visit, ann, true);
  });

  test('with somebody else’s state, a made-up one, two, or that of an earlier attempt is refused', async () => {
    const [ann, bob] = [await onTheWayBack(ANN, 'ann'), await onTheWayBack(BOB, 'bob')];
    const theirs = bob.back.searchParams.get('state')!;
    for (const change of [
      (query: URLSearchParams) => query.set('state', theirs),
      (query: URLSearchParams) => query.set('state', `sta_${'A'.repeat(43)}`),
      (query: URLSearchParams) => query.append('state', theirs),
      (query: URLSearchParams) => query.delete('state'),
    ])
      await nothingCame(await ann.browser.get(changed(ann.back, change)), ann);
    await start(ann.browser, ann.url);
    await nothingCame(await ann.browser.get(ann.back.href), ann);
  });

  test('in another browser, also an owner’s, or at another redirect URI is refused', async () => {
    const ann = await onTheWayBack(ANN, 'ann');
    await nothingCame(await new Browser().get(ann.back.href), ann);
    await nothingCame(await browserOf(world, organisation.owner).get(ann.back.href), ann);
    const strangers = await world.organisation();
    for (const path of ['/me/consent/signed-in', '/console/connections/callback', `/console/connected/${strangers.id}`])
      await nothingCame(await ann.browser.get(ann.back.href.replace(callback(), path)), ann);
  });

  test('repeated, also concurrently, results in one token for one person', async () => {
    const ann = await onTheWayBack(ANN, 'ann');
    const visits = await Promise.all([1, 2, 3].map(() => ann.browser.get(ann.back.href)));
    expect(visits.filter(({ text }) => text.includes('Use the account ann@docs.example?')).length).toBeGreaterThan(0);
    expect(server.seen.filter((path) => path === 'POST /token')).toHaveLength(1);
    const kept = await Promise.all([1, 2, 3].map(() => ann.browser.post(`${ann.url}/keep`, {})));
    expect(kept.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toHaveLength(1);
    await confirmAll(organisation);
    expect(await who(ANN)).toBe('ann');
    expect((await ann.browser.get(ann.back.href)).text).not.toContain('Use the account');
    expect(await who(ANN)).toBe('ann');
  });

  test('after the agent was revoked obtains and stores nothing', async () => {
    const [ann, bob] = [await onTheWayBack(ANN, 'ann'), await onTheWayBack(BOB, 'bob')];
    expect((await ann.browser.get(ann.back.href)).text).toContain('Use the account ann@docs.example?');
    issued = server.given.access.length;
    await expectStatus(200, organisation.ask('POST', `/owner/agents/${agent.id}/revoke`, {}));
    expect((await bob.browser.get(bob.back.href)).text).toContain('was revoked');
    expect(server.given.access).toHaveLength(issued);
    for (const step of ['keep', 'start']) expect((await ann.browser.post(`${ann.url}/${step}`, {})).status).toBe(409);
    expect((await new Browser().get(ann.url)).status).toBe(409);
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toEqual([]);
  });

  test('after the link has expired, or the connection was removed, is refused', async () => {
    const [ann, bob] = [await onTheWayBack(ANN, 'ann'), await onTheWayBack(BOB, 'bob')];
    expect((await govern(organisation, document({ connections: {} }))).status).toBe(200);
    expect((await ann.browser.get(ann.back.href)).status).toBeGreaterThanOrEqual(400);
    world.clock.skewMs = 31 * 60_000;
    expect((await bob.browser.get(bob.back.href)).status).toBeGreaterThanOrEqual(400);
    expect(server.given.access).toHaveLength(issued);
  });
});
