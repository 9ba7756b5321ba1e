/** Connecting a platform from an empty organisation, with the mouse and with the keyboard alone, until an agent is granted it. */
import { expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, has, openConsole, says } from '../world/browser/console.ts';
import { givenWorld, shared } from '../world/world.ts';

const TOKEN = 'CANARY-pasted-0123456789-abcdef';
const NEWER = 'CANARY-newer-9876543210-fedcba';
const HOSTILE = '<img src=x onerror=alert(1)>\u202e';

describeInChromium('connecting a platform in the console', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());
  const tabTo = async (page: Page, selector: string) => {
    for (let step = 0; step < 60; step++) {
      if (await page.value(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
      await page.press('Tab');
    }
    throw new Error(`Tab never came to ${selector}`);
  };
  const write = async (page: Page, selector: string, text: string) => {
    await page.click(selector);
    await page.type(text);
  };
  /** Expects no part of a secret in the page, its URL or the browser's storage. */
  const expectNothingOf = async (page: Page, secret: string) =>
    expect(
      await page.value(
        `document.documentElement.outerHTML + location.href + JSON.stringify({...localStorage, ...sessionStorage}) + [...document.querySelectorAll('input')].map((one) => one.value)`,
      ),
    ).not.toContain(secret);

  test('with the mouse: a refused token is not stored; a valid one is tested and the platform granted to an agent', async () => {
    const organisation = await world.organisation();
    const agent = await organisation.agent({ policy: await organisation.policy([{ effect: 'allow' }], 'default') });
    const page = await openConsole(world, browser, organisation.owner);
    await page.click('nav a[href="/console/connections"]');
    await page.click('#first-connection');
    await page.until(`document.querySelectorAll('#gallery a').length === 13`);
    await has(page, '[data-builtin="github"]', 'Token, OAuth or App');
    await expectAccessible(page, 'the gallery');
    await page.resize(DESKTOP);
    await page.screenshot('gallery');
    await page.click('[data-builtin="npm"]');
    await page.until(`document.activeElement.matches('h1')`);
    await has(page, '.grantable', 'publish');
    await page.click('.elsewhere summary');
    await write(page, '[data-part="address"]', `${world.upstream.url}/npm`);
    await write(page, '[data-part="secret"]', TOKEN);
    expect(await page.value(`document.querySelector('[data-part="secret"]').type`)).toBe('password');
    await expectAccessible(page, 'the form of a platform');
    await page.resize(DESKTOP);
    await page.screenshot('gallery-form');
    world.upstream.answer = (_, response) => response.writeHead(401).end();
    await page.click('#connect');
    await has(page, '#refused', 'Nothing was stored');
    expect((await organisation.ask('GET', '/owner/platforms')).body.platforms).toEqual([]);
    await expectNothingOf(page, TOKEN);
    world.upstream.answer = undefined;
    world.upstream.seen.length = 0;
    await write(page, '[data-part="secret"]', TOKEN);
    await page.click('#connect');
    await has(page, '#done', 'npm is connected Worked');
    expect(world.upstream.seen.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${TOKEN}`]);
    await expectNothingOf(page, TOKEN);
    await expectAccessible(page, 'what came of connecting');
    await page.resize(DESKTOP);
    await page.screenshot('gallery-done');
    await page.click('#give');
    await page.until(`location.pathname === '/console/agents/${agent.agentId}' && location.search === ''`);
    await page.click('dialog [data-preset="read"]');
    await page.click('#save-grant');
    await page.until(`document.querySelector('[data-grant="npm"]') !== null`);
    await goTo(page, `${world.running.baseUrl}/console/connections/new`);
    await has(page, '[data-builtin="npm"] .badge', '1 connection · Worked');
    await organisation.connection('npm');
    await goTo(page, `${world.running.baseUrl}/console/connections/new`);
    await has(page, '[data-builtin="npm"] .badge', '2 connections · 1 not tried yet');
    // The state badge does not narrow the name.
    expect(
      await page.value(`document.querySelector('[data-builtin="npm"] strong').getClientRects().length`),
      'lines of the name',
    ).toBe(1);
    expect(page.complaints).toEqual([]);
  });

  test('by keyboard alone: a secret of several fields, a new secret that must pass its test first, settings, and removing', async () => {
    const organisation = await world.organisation();
    const page = await openConsole(world, browser, organisation.owner);
    await goTo(page, `${world.running.baseUrl}/console/connections`);
    await page.until(`document.querySelector('#first-connection') !== null`);
    await tabTo(page, '#first-connection');
    await page.press('Enter');
    await page.until(`document.querySelector('[data-builtin="s3"]') !== null`);
    await tabTo(page, '[data-builtin="s3"]');
    await page.press('Enter');
    await page.until(
      `document.activeElement.matches('h1') && document.querySelector('[data-part="address"]') !== null`,
    );
    for (const [part, text] of [
      ['address', world.upstream.url],
      ['access_key_id', 'AKIACANARY0123456789'],
      ['secret_access_key', TOKEN],
    ] as const) {
      await tabTo(page, `[data-part="${part}"]`);
      await page.type(text);
    }
    expect(await page.value(`document.querySelector('[data-part="access_key_id"]').type`)).toBe('text');
    await page.press('Enter');
    await has(page, '#done', 's3 is connected');
    await has(page, '#done', 'No agent may use it yet');
    await tabTo(page, '#to-connections');
    await page.press('Enter');
    await has(page, '#connections', 's3');

    await tabTo(page, '.replace');
    await page.press('Enter');
    await page.until(`document.querySelector('dialog [data-part="secret_access_key"]') !== null`);
    world.upstream.answer = (_, response) => response.writeHead(403).end();
    await tabTo(page, '[data-part="access_key_id"]');
    await page.type('AKIACANARY0123456789');
    await tabTo(page, '[data-part="secret_access_key"]');
    await page.type(NEWER);
    await page.press('Enter');
    await has(page, '#refused', 'The old secret is still in use');
    const one = async () => (await organisation.ask('GET', '/owner/connections')).body.connections;
    expect(await one()).toMatchObject([{ label: 's3', revision: 1 }]);
    await expectAccessible(page, 'replacing a secret');
    await page.resize(DESKTOP);
    await page.screenshot('gallery-replace');
    world.upstream.answer = undefined;
    await tabTo(page, '#replace');
    await page.press('Enter');
    await says(page, '“s3” uses the new secret.');
    expect(await one()).toMatchObject([{ label: 's3', revision: 2, last_test: { ok: true } }]);
    await expectNothingOf(page, NEWER);

    await page.until(`document.querySelector('dialog') === null`);
    await tabTo(page, '.settings');
    await page.press('Enter');
    await has(page, 'dialog .command', `${world.running.baseUrl}/proxy/s3`);
    await tabTo(page, '[data-setting="idle"]');
    await page.type('300');
    await page.press('Enter');
    await says(page, 'The settings of “s3” are changed.');
    expect(await one()).toMatchObject([{ idle_seconds: 300, wait_seconds: null }]);
    await page.resize({ width: 360, height: 740 }, 'phone');
    await page.screenshot('gallery-row-phone');
    await page.resize(DESKTOP);

    await tabTo(page, '.remove');
    await page.press('Enter');
    await tabTo(page, '#remove');
    await page.press('Enter');
    await says(page, '“s3” is removed.');
    await page.until(`document.querySelector('#first-connection') !== null`);
    expect(page.complaints).toEqual([]);
  });

  test('OAuth: the page shows where to register and leads to consent; another account is added to an existing platform', async () => {
    const organisation = await world.organisation();
    const page = await openConsole(world, browser, organisation.owner);
    // A platform that needs a command shows it, with a link to the guide.
    await goTo(page, `${world.running.baseUrl}/console/connections/new?platform=kubernetes`);
    await page.until(`document.querySelector('main a[href="/docs/platforms#kubernetes"]') !== null`);
    await has(page, 'main', 'Make a token of a service account with kubectl create token NAME (how), with only');
    await goTo(page, `${world.running.baseUrl}/console/connections/new?platform=github`);
    await page.click('input[value="oauth"]');
    await has(page, '#connect-form', `${world.running.baseUrl}/console/connected/${organisation.id}`);
    await write(page, '[data-part="client_id"]', 'Iv1.abc');
    await write(page, '[data-part="client_secret"]', TOKEN);
    await page.screenshot('gallery-oauth');
    await page.click('#connect');
    await page.until(`document.querySelector('dialog .host')?.innerText === 'github.com'`);
    await expectNothingOf(page, TOKEN);
    await page.press('Escape');
    await page.until(`location.pathname === '/console/connections'`);
    await has(page, '#connections', 'github Not connected');
    await page.click('#to-gallery');
    await page.click('[data-builtin="github"]');
    await has(page, '#connect-form', 'is registered at GitHub already');
    expect(await page.value(`document.querySelector('[data-part="label"]').value`)).toBe('github-2');
    await page.click('#which');
    await page.press('Escape');
    expect(page.complaints).toEqual([]);
  });

  test('a GitHub App is created by a prefilled form; a custom API is added from its OpenAPI document, and removed', async () => {
    const organisation = await world.organisation();
    const page = await openConsole(world, browser, organisation.owner);
    await goTo(page, `${world.running.baseUrl}/console/connections/new?platform=github`);
    await page.click('input[value="app"]');
    await write(page, '[data-part="org"]', 'acme');
    const form = new URL(await page.value(`document.querySelector('#make-app').href`));
    expect(form.origin + form.pathname).toBe('https://github.com/organizations/acme/settings/apps/new');
    expect(Object.fromEntries(form.searchParams)).toMatchObject({
      public: 'false',
      webhook_active: 'false',
      contents: 'write',
      pull_requests: 'write',
      actions: 'read',
    });
    await page.click('.elsewhere summary');
    await write(page, '[data-part="address"]', 'https://github.acme.example/api/v3');
    expect(await page.value(`document.querySelector('#make-app').href`)).toContain('https://github.acme.example/org');

    await goTo(page, `${world.running.baseUrl}/console/connections/new?own=rest`);
    await page.until(`document.querySelector('[data-field="openapi"]') !== null`);
    const document = {
      openapi: '3.0.3',
      info: { title: HOSTILE },
      servers: [{ url: world.upstream.url }],
      components: { securitySchemes: { one: { type: 'apiKey', in: 'query', name: 'key' } } },
      paths: { '/pets/{id}': { get: { tags: ['pets'] }, delete: { tags: ['pets'] } } },
    };
    await page.value(`((field) => {
        const files = new DataTransfer();
        files.items.add(new File([${JSON.stringify(JSON.stringify(document))}], 'openapi.json'));
        field.files = files.files;
        field.dispatchEvent(new Event('change', { bubbles: true }));
      })(document.querySelector('[data-field="openapi"]'))`);
    await has(page, '#found', '2 operations');
    await page.resize(DESKTOP);
    await page.screenshot('own-api.png');
    await page.resize({ width: 360, height: 740 }, 'phone');
    await page.screenshot('own-api-phone.png');
    await page.resize(DESKTOP);
    await page.click('[data-part="id"]');
    await page.press('Control+a');
    await page.type('pets');
    await write(page, '[data-part="secret"]', TOKEN);
    await page.click('#connect');
    await has(page, '#done', 'pets is connected');
    expect(world.upstream.seen.at(-1)?.target).toContain(`key=${TOKEN}`);
    const { body } = await organisation.ask('GET', '/owner/platforms/pets');
    expect(body.scopes).toEqual([
      { scope: 'pets:pets.read', rules: ['GET /pets/*'] },
      { scope: 'pets:pets.delete', rules: ['DELETE /pets/*'] },
    ]);
    await expectNothingOf(page, TOKEN);
    await goTo(page, `${world.running.baseUrl}/console/connections/new`);
    await page.click('[data-own="pets"]');
    await page.click('#remove-platform');
    await page.click('#do-it');
    await has(page, 'dialog [role="alert"]', 'has connections');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await write(page, '[data-part="secret"]', NEWER);
    await page.click('#connect');
    await has(page, '#done', 'pets-2 is connected');
    await page.click('#to-connections');
    await page.click('.remove');
    await page.click('#remove');
    await says(page, 'is removed');
    await page.until(`document.querySelectorAll('.remove').length === 1`);
    await page.click('.remove');
    await page.click('#remove');
    await says(page, 'is removed');
    await goTo(page, `${world.running.baseUrl}/console/connections/new?to=pets`);
    await page.click('#remove-platform');
    await page.click('#do-it');
    await page.until(`document.querySelector('#gallery') !== null && document.querySelector('#own') === null`);
    expect((await organisation.ask('GET', '/owner/platforms')).body.platforms).toEqual([]);
    expect(page.complaints.filter((one) => !one.includes('409'))).toEqual([]);
  });

  test('a person without the admin role reads why they cannot; hostile names are shown as text', async () => {
    const organisation = await world.organisation();
    await organisation.platform({ id: 'demo', manifest: { name: HOSTILE } });
    const page = await openConsole(world, browser, await organisation.addOwner('approver'));
    await goTo(page, `${world.running.baseUrl}/console/connections/new?platform=stripe`);
    await has(page, 'main', 'Your role is approver: an admin connects platforms.');
    await has(page, '.grantable', 'refunds');
    expect(await page.value(`document.querySelector('#connect-form')`)).toBeNull();
    await goTo(page, `${world.running.baseUrl}/console/connections`);
    expect(await page.value(`document.querySelector('main img, #to-gallery')`)).toBeNull();
    expect(page.complaints).toEqual([]);
  });

  test('the API returns the governance entry of a built-in platform as the command line writes it', async () => {
    const organisation = await world.organisation();
    const at = '/owner/built-in-platforms/github/entry?platform=hub';
    const oauth = await organisation.ask('GET', `${at}&client_id=x&base_url=https://github.acme.example`);
    expect(oauth.body).toMatchObject({
      entry: {
        use: 'github',
        base_url: 'https://github.acme.example/api/v3',
        auth: { type: 'oauth2', client_id: 'x', client_secret: { env: 'HUB_CLIENT_SECRET' } },
      },
      secrets: ['client_secret'],
    });
    expect((await organisation.ask('GET', `${at}&app_id=7`)).body.error).toBe('invalid_request');
    expect((await organisation.ask('GET', `${at}&base_url=nonsense`)).body.detail).toContain('is no address');
    const jira = await organisation.ask('GET', '/owner/built-in-platforms/jira/entry');
    expect([jira.status, jira.body.detail]).toEqual([400, expect.stringContaining('a different address')]);
    await expectStatus(400, organisation.ask('GET', '/owner/built-in-platforms/stripe/entry?client_id=x'));
    expect((await organisation.ask('GET', '/owner/built-in-platforms/nothing/entry')).status).toBe(404);
  });
});
