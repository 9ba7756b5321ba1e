/** The state of a connection comes from its last test and its last call: a stored secret alone is "Not tried yet". */
import { describe, expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, openConsole, says } from '../world/browser/console.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, READ, shared } from '../world/world.ts';

type Outcome = { at: string; ok: boolean; upstream_status: number | null; detail?: string };
type Listed = { id: string; last_test: Outcome | null; last_use: Outcome | null; lacks_consent_for: string[] };

describe.each(STORES)(`the last test and the last use of a connection, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const listed = async (): Promise<Listed> =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { platform: string }) => one.platform === 'demo',
    );
  const answers = (status: number) => {
    world.upstream.answer = (_request, response) => response.writeHead(status).end('{}');
  };
  const test_ = async () => await organisation.ask('POST', `/owner/connections/${(await listed()).id}/test`, {});

  test('both are null before the first test and call', async () => {
    expect(await listed()).toMatchObject({ last_test: null, last_use: null });
  });

  test('the result of the last test is kept until the credential changes', async () => {
    answers(401);
    await test_();
    const { id, last_test } = await listed();
    expect(last_test).toMatchObject({ ok: false, upstream_status: 401 });
    expect(last_test?.detail).toContain('it refused the credential');
    expect(Math.abs(Date.parse(last_test!.at) - Date.now())).toBeLessThan(60_000);
    answers(200);
    await test_();
    expect((await listed()).last_test).toMatchObject({ ok: true, upstream_status: 200 });
    await organisation.ask('POST', `/owner/connections/${id}/secret`, { secret: 'another_secret_of_ours' });
    expect((await listed()).last_test).toBe(null);
  });

  test('a test that could not reach the platform is reported with the reason', async () => {
    await organisation.platform({ id: 'private', manifest: { base_url: 'https://10.1.2.3/' }, secret: null });
    const id = await organisation.connection('private');
    await organisation.ask('POST', `/owner/connections/${id}/test`, {});
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    const one = connections.find((each: Listed) => each.id === id);
    expect(one.last_test).toMatchObject({ ok: false, upstream_status: null });
    expect(one.last_test.detail).toContain('not one that this broker may connect to');
  });

  test('the last call: 2xx counts as working, 401 as failing, and 404 changes nothing', async () => {
    const agent = await organisation.agent();
    await agent.act(READ);
    expect((await listed()).last_use).toMatchObject({ ok: true, upstream_status: 200 });
    answers(404);
    await agent.act(READ);
    expect((await listed()).last_use).toMatchObject({ ok: true, upstream_status: 200 });
    answers(401);
    await agent.act(READ);
    const { id, last_use } = await listed();
    expect(last_use).toMatchObject({ ok: false, upstream_status: 401 });
    await organisation.ask('POST', `/owner/connections/${id}/secret`, { secret: 'another_secret_of_ours' });
    expect((await listed()).last_use).toBe(null);
  });

  test('the list shows the scopes that need more than the platform granted', async () => {
    const manifest = { needs: { 'demo:write': ['write', 'admin'], 'demo:read': ['read'] } };
    await organisation.platform({ id: 'needy', manifest, secret: null });
    const id = await organisation.connection('needy', { upstreamScopes: ['read'] });
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    const lacks = Object.fromEntries(connections.map((each: Listed) => [each.id, each.lacks_consent_for]));
    expect(lacks[id]).toEqual(['demo:write']);
    expect(lacks[(await listed()).id]).toEqual([]);
  });
});

describeInChromium('the badge of a connection', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const badge = (words: string, kind: string) =>
    page.until(
      `((one) => one?.innerText.replace(/\\s+/g, ' ').startsWith('${words}') && one.dataset.kind === '${kind}')(document.querySelector('#connections .badge'))`,
    );

  test('is green only after a successful call or test; the Test button runs a test', async () => {
    await goTo(page, `${world.running.baseUrl}/console/connections`);
    await badge('Not tried yet', '');
    world.upstream.answer = (_request, response) => response.writeHead(401).end('{}');
    await page.click('#connections .test');
    await says(page, 'it refused the credential');
    await badge('Refused just now', 'bad');
    expect(await page.value(`document.querySelector('#connections .outcome').innerText`)).toContain(
      'Last test: The platform answered 401',
    );
    world.upstream.answer = (_request, response) => response.writeHead(404).end('{}');
    await page.click('#connections .test');
    await badge('Reached just now', '');
    world.upstream.answer = undefined;
    await page.click('#connections .test');
    await badge('Worked just now', 'good');
  });

  test('of a platform in the gallery shows the worst of its connections, and how many have that state', async () => {
    const at = '2026-01-01T00:00:00Z';
    const untried = { state: 'connected', last_test: null, last_use: null };
    const worked = { ...untried, last_use: { at, ok: true, upstream_status: 200 } };
    const attention = { ...worked, state: 'needs_attention' };
    const all = async (...connections: object[]) =>
      await page.value(
        `import('/console/connections/connection-labels.js').then(({ badgeOfAll }) => badgeOfAll(${JSON.stringify(connections)}))`,
      );
    expect(await all({ ...untried, state: 'not_connected' })).toBeUndefined();
    expect(await all(untried)).toEqual({ kind: '', words: '1 connection · Not tried yet' });
    expect(await all(worked, worked)).toEqual({ kind: 'good', words: '2 connections · Worked' });
    expect(await all(worked, untried)).toEqual({ kind: '', words: '2 connections · 1 not tried yet' });
    expect(await all(worked, attention, untried)).toEqual({
      kind: 'bad',
      words: '3 connections · 1 needs attention',
    });
  });

  test('a person who may not test has no Test button', async () => {
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await viewer.open(`${world.running.baseUrl}/console/connections`);
    await viewer.until(`document.querySelector('#connections .badge') !== null`);
    expect(await viewer.value(`document.querySelector('#connections .test')`)).toBe(null);
    expect(viewer.complaints).toEqual([]);
  });
});
