/** People in a real browser: owners see counts and no identities; two people consent, and each sees only their own connections. */
import { expect, test } from 'vitest';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, openConsole, PHONE, says } from '../world/browser/console.ts';
import { agentOfPeople, consentAsserted, copyTokens } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { shared } from '../world/world.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

/** Fills in and sends the form of a provider's sign-in, which takes any password. */
async function typeLogin(page: Page, login: string): Promise<void> {
  await page.until(`document.querySelector('input[name=login]') !== null`);
  await page.click('input[name=login]');
  await page.type(login);
  await page.click('input[name=password]');
  await page.type('x');
  await page.click('button[type=submit]');
}

describeInChromium('people in a browser', () => {
  const { server, issuer, world, organisation, act, assertion, connected } = givenPeople('sqlite');
  const browser = shared(() => startBrowser());
  const open = async (path: string, page?: Page) => {
    const on = page ?? (await openConsole(world, browser, organisation.owner));
    await goTo(on, world.running.baseUrl + path);
    return on;
  };
  const textOf = (page: Page, selector = 'main') =>
    page.value<string>(`document.querySelector(${JSON.stringify(selector)}).innerText`);
  const has = (page: Page, words: string, selector = 'body') =>
    page.until(`document.querySelector(${JSON.stringify(selector)})?.innerText.includes(${JSON.stringify(words)})`);
  const fill = async (page: Page, selector: string, text: string) => {
    await page.click(selector);
    await page.value(`document.querySelector(${JSON.stringify(selector)}).select()`);
    await page.type(text);
  };
  /** Confirms the open dialog. */
  const end = async (page: Page) => {
    await page.click('#end');
    await page.until(`document.querySelector('dialog') === null`);
  };
  const waits = async (caller: object, login: string) => {
    const { body } = await act(caller);
    await consentAsserted(server, body.consent_url, login);
  };

  test('the dialog that removes a connection states that the connections of people end with it', async () => {
    const page = await open('/console/connections');
    await page.until(`document.querySelector('.remove') !== null`);
    await page.click('.remove');
    await has(page, 'The tokens that people gave for it are revoked at the platform', 'dialog');
  });

  test('a pending account appears in the inbox immediately, and is confirmed for the right person only', async () => {
    const page = await openConsole(world, browser, organisation.owner);
    await waits(slack('U-ANN'), 'ann');
    await page.until(`document.querySelector('#people-wait') !== null`);
    await page.click('#people-wait a');
    await page.until(`location.pathname === '/console/people'`);
    await has(page, 'ann@docs.example');
    expect(await textOf(page, '.counts')).toContain('1 waits to be confirmed · 0 in use');
    await page.click('.confirm');
    await fill(page, '#compare', 'slack:U-BOB');
    await page.click('#confirm-account');
    await has(page, 'for somebody else', 'dialog [role=alert]');
    await fill(page, '#compare', 'slack:U-ANN');
    await page.click('#confirm-account');
    await says(page, 'The account is confirmed');
    await has(page, '0 wait to be confirmed · 1 in use', '.counts');
    expect((await act(slack('U-ANN'))).body.data.who).toBe('ann');
    expect(await page.value('document.body.textContent')).not.toMatch(/U-ANN|ann@docs/);
    expect(page.complaints.filter((one) => !one.includes('409'))).toEqual([]);
  });

  test('connections of people are ended one by one, for one person by the name that agents use, and for all', async () => {
    await connected(slack('U-ANN'), 'ann');
    await connected(slack('U-BOB'), 'bob');
    await connected(slack('U-CY'), 'cy');
    const page = await open('/console/people');
    await fill(page, '#person', 'slack:U-NOBODY');
    await page.click('#end-person');
    await end(page);
    await says(page, 'Nothing was ended');
    await fill(page, '#person', 'slack:U-ANN');
    await page.click('#end-person');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect(await page.value(`document.querySelector('#person').value`)).toBe('slack:U-ANN');
    await page.click('#end-person');
    await end(page);
    await says(page, 'Ended 1,');
    await page.until(`document.querySelector('#person').value === ''`);
    expect((await act(slack('U-ANN'))).status).toBe(412);
    expect((await act(slack('U-BOB'))).status).toBe(200);
    await page.click('.given summary');
    await page.click('.given .end');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await page.click('.given .end');
    await end(page);
    await says(page, 'Ended 1,');
    await page.click('#end-all');
    await end(page);
    await says(page, 'Ended 1,');
    expect([(await act(slack('U-BOB'))).status, (await act(slack('U-CY'))).status]).toEqual([412, 412]);
  });

  test('what many people gave is loaded when it is opened, in pages', async () => {
    await connected(slack('U-ANN'), 'ann');
    await copyTokens(world, organisation, 119);
    const page = await open('/console/people');
    await has(page, 'What 120 people gave', '.given summary');
    const shown = () => page.value<number>(`document.querySelectorAll('.given .row').length`);
    const until = (count: number) => page.until(`document.querySelectorAll('.given .row').length === ${count}`);
    expect(await shown()).toBe(0);
    await page.click('.given summary');
    await until(50);
    await page.click('.given .next');
    await page.until(`!document.querySelector('.given .previous').disabled`);
    await until(50);
    await page.click('.given .next');
    await until(20);
    expect(await page.value(`document.querySelector('.given .next').disabled`)).toBe(true);
    await page.click('.given .end');
    await end(page);
    await says(page, 'Ended 1,');
    await until(19);
    await has(page, 'What 119 people gave', '.given summary');
    await page.click('.given .previous');
    await until(50);
    await page.click('.given .end-connection');
    await end(page);
    await says(page, 'Ended 119,');
    await page.until(`document.querySelector('.given') === null`);
    expect(page.complaints).toEqual([]);
  });

  test('connections of people are switched on and off per platform, and issuers are trusted and removed', async () => {
    const page = await open('/console/connections');
    await page.click('#to-people');
    await page.until(`document.querySelector('.switch') !== null`);
    await page.click('.switch summary');
    await fill(page, '#sources-docs', 'teams');
    await page.click('.save');
    await says(page, 'holds one token per person');
    expect((await act(slack('U-ANN'))).body.reason).toBe('asserted_not_allowed');
    const { redirect_uris: uris } = (await organisation.ask('GET', '/owner/caller-issuers')).body;
    expect(await page.value(`document.querySelector('#issuers .redirect').textContent`)).toBe(uris[issuer.issuer]);
    await page.click('.remove');
    await page.click('#distrust');
    await says(page, 'It is no longer trusted.');
    expect((await act(await assertion('ann'))).body.reason).toBe('no_caller');
    await page.click('.add summary');
    await fill(page, '#issuer', issuer.issuer);
    await fill(page, '#audience', 'agents');
    await page.click('#trust');
    await says(page, 'accepted from now on');
    expect((await act(await assertion('ann'))).body.reason).toBe('not_consented');
    expect(page.complaints).toEqual([]);
  });

  test('a client for an issuer that is trusted already keeps the other terms of its trust', async () => {
    const terms = { audience: 'agents', claim: 'email', algorithms: ['RS256'], jwks_uri: `${issuer.issuer}/jwks` };
    const trusted = { issuer: issuer.issuer, ...terms };
    expect((await organisation.ask('POST', '/owner/caller-issuers', trusted)).status).toBe(200);
    const page = await open('/console/people');
    await has(page, 'nobody can consent');
    await page.click('.add summary');
    await fill(page, '#issuer', issuer.issuer);
    await fill(page, '#audience', 'agents');
    await fill(page, '#client', 'broker');
    await page.click('#trust');
    await says(page, 'accepted from now on');
    const { caller_issuers: after } = (await organisation.ask('GET', '/owner/caller-issuers')).body;
    expect(after).toEqual([{ ...trusted, client_id: 'broker' }]);
  });

  test('an approver sees pending accounts and can change nothing, a viewer sees no people; the page fits on a phone', async () => {
    await waits(slack('U-ANN'), 'ann');
    const see = async (role: 'approver' | 'viewer') =>
      open('/console/people', await openConsole(world, browser, await organisation.addOwner(role), PHONE));
    const approver = await see('approver');
    await has(approver, 'ann@docs.example');
    const viewer = await see('viewer');
    await has(viewer, 'Your role is viewer');
    for (const page of [approver, viewer]) {
      expect(await page.value(`document.querySelectorAll('main button, main input').length`)).toBe(0);
      expect(await page.value(`document.documentElement.scrollWidth <= innerWidth`)).toBe(true);
    }
    const admin = await open('/console/people', await openConsole(world, browser, organisation.owner, PHONE));
    await has(admin, 'ann@docs.example');
    await admin.value(`document.querySelectorAll('details').forEach((one) => { one.open = true; })`);
    expect(await admin.value(`document.documentElement.scrollWidth <= innerWidth`)).toBe(true);
  });

  test('a verified person signs in to consent, and in another browser to see and withdraw it', async () => {
    const { body } = await act(await assertion('ann'));
    const signIn = async (page: Page, login: string) => {
      await typeLogin(page, login);
      await page.until(`!document.querySelector('input[name=login]') && document.querySelector('button') !== null`);
      await page.click('button');
    };
    const page = await browser.page(DESKTOP);
    await page.open(body.consent_url);
    await has(page, `known at ${new URL(issuer.issuer).host}`);
    await page.click('button.primary');
    await page.until(`location.origin === ${JSON.stringify(issuer.issuer)}`);
    await signIn(page, 'ann');
    await page.until(`location.origin === ${JSON.stringify(server.issuer)}`);
    await signIn(page, 'ann');
    await has(page, 'Use the account ann@docs.example?');
    await page.click('button.primary');
    await has(page, 'The agent can go on');
    expect((await act(await assertion('ann'))).body.data.who).toBe('ann');

    const elsewhere = await browser.page(PHONE);
    await elsewhere.open(`${world.running.baseUrl}/me/connections?organisation=${organisation.id}`);
    await has(elsewhere, 'Here you see');
    expect(await textOf(elsewhere)).not.toContain('ann@docs.example');
    await elsewhere.click('form button');
    await elsewhere.until(`location.origin === ${JSON.stringify(issuer.issuer)}`);
    await signIn(elsewhere, 'ann');
    await has(elsewhere, 'ann@docs.example');
    await elsewhere.click('.given button');
    await has(elsewhere, 'Withdrawn');
    await page.open(`${world.running.baseUrl}/me/connections`);
    await has(page, 'have no access to any of your accounts');
    expect((await act(await assertion('ann'))).status).toBe(412);
  });

  test('two people consent on their phones, each sees only their own connection, and one withdraws it', async () => {
    await organisation.agent({
      name: HOSTILE,
      policy: await organisation.policy([{ effect: 'allow' }] as never),
      grants: { docs: { scopeList: ['docs:read'] } },
    });
    const other = await agentOfPeople(organisation);
    const consent = async (id: string, login: string): Promise<Page> => {
      const { body } = await act(slack(id), {}, other);
      const page = await browser.page(PHONE);
      await page.resize(PHONE, 'phone');
      await page.open(body.consent_url);
      await page.click('button.primary');
      await typeLogin(page, login);
      await page.until(`document.querySelector('form') !== null && !document.querySelector('input[name=login]')`);
      if (!(await page.value<string>('document.body.innerText')).includes('Use the account'))
        await page.click('button[type=submit]');
      await has(page, `Use the account ${login}@docs.example?`);
      await page.click('button.primary');
      await has(page, 'has to confirm it');
      await page.click('a.button');
      await has(page, 'What you gave');
      return page;
    };
    const [anns, bobs] = [await consent('U-ANN', 'ann'), await consent('U-BOB', 'bob')];
    for (const [page, own, others] of [
      [anns, 'ann@docs.example', 'bob@docs.example'],
      [bobs, 'bob@docs.example', 'ann@docs.example'],
    ] as const) {
      const shown = await textOf(page);
      expect(shown).toContain(own);
      expect(shown).not.toContain(others);
      expect(shown).toContain(HOSTILE);
      expect(await page.value(`document.querySelectorAll('main img:not(.brand img)').length`)).toBe(0);
      expect(await page.value(`document.documentElement.scrollWidth <= innerWidth`)).toBe(true);
      expect(await page.value('document.cookie')).toBe('');
      // The pages of the authorization server are not checked.
      expect(page.complaints.filter((one) => !one.includes(server.issuer))).toEqual([]);
    }
    for (const { id } of (await organisation.ask('GET', '/owner/people')).body.tokens)
      await organisation.ask('POST', `/owner/people/tokens/${id}/confirm`, {});
    const callers = [slack('U-ANN'), slack('U-BOB')];
    expect((await Promise.all(callers.map((caller) => act(caller)))).map(({ body }) => body.data.who)).toEqual([
      'ann',
      'bob',
    ]);
    await anns.screenshot('me-connections.png');
    await anns.click('.given button');
    await has(anns, 'Withdrawn');
    expect((await act(slack('U-ANN'))).status).toBe(412);
    expect((await act(slack('U-BOB'))).body.data.who).toBe('bob');
    await anns.click('a.button');
    await has(anns, 'have no access to any of your accounts');
    await bobs.resize(DESKTOP);
    await bobs.open(`${world.running.baseUrl}/me/connections`);
    await has(bobs, 'In use');
  });
});
