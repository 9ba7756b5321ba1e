/** The consent to an MCP client in a real browser, whose cookies and frames follow its vendor's rules and not the test's. */
import { createServer } from 'node:http';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, isLive, PHONE } from '../world/browser/console.ts';
import { connectInPopup } from '../world/browser/popup-client.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { browserOf, consent } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { DEMO_RULES, givenWorld, shared } from '../world/world.ts';

describeInChromium('in a real browser', () => {
  let baseUrl: string;
  /** The client's site, which differs from the broker's. */
  let site: string;
  let called: string[] = [];
  let html = '';
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const browser = shared(() => startBrowser());
  beforeAll(async () => {
    const server = createServer((request, response) => {
      called.push(request.url!);
      response.setHeader('content-type', 'text/html');
      response.end(request.url!.startsWith('/callback') ? '<h1>back</h1>' : html);
    });
    const port = await listenOnLoopback(server);
    site = `http://127.0.0.1:${port}`;
    baseUrl = world.running.baseUrl;
  });
  beforeEach(() => {
    called = [];
  });
  const clientOf = async () => {
    const client = new OAuthClient(world);
    await client.register({ client_name: 'Claude Code', redirect_uris: [`${site}/callback`] });
    return client;
  };
  const signedIn = async (size = DESKTOP): Promise<Page> => {
    const page = await browser.page(size);
    await page.open((await signInLink(world.running.broker, organisation.owner)).url);
    await isLive(page);
    return page;
  };
  /** Opens a link on the client's own site, where people come from. */
  const follow = async (page: Page, address: string) => {
    html = `<a id="go" href="${address.replaceAll('&', '&amp;')}">connect</a>`;
    await page.open(site);
    await page.click('#go');
  };

  test('an owner from another site sees the client, allows it, and returns with a valid code', async () => {
    const client = await clientOf();
    const page = await signedIn();
    await follow(page, client.address({ redirect_uri: `${site}/callback` }));
    await page.until(`document.querySelector('#client')?.textContent === 'Claude Code'`);
    expect(await page.value(`document.querySelector('#redirect-host').textContent`)).toBe('127.0.0.1');
    expect(await page.value(`document.querySelector('#given').textContent.trim()`)).toBe('demo:read');
    // Requested and granted access are described without contradiction.
    const label = (value: string) =>
      `document.querySelector('[name="access"][value="${value}"]').parentElement.innerText`;
    expect(await page.value(label('reads'))).toBe('Read on demo');
    expect(await page.value(`document.querySelector('#not-yet').innerText`)).toContain('it has to ask you for access');
    await page.click('[name="access"][value="all"]');
    await page.until(`document.querySelector('#not-yet') === null`);
    await page.click('[name="access"][value="reads"]');
    await page.screenshot('consent.png');
    await expectAccessible(page, 'a client that asks');
    await page.resize(DESKTOP);
    await page.click('#allow');
    await page.until(`document.body.innerText === 'back'`);
    const back = new URL(called.findLast((url) => url.startsWith('/callback'))!, site);
    expect(back.searchParams.get('iss')).toBe(baseUrl);
    const tokens = await client.redeem(back.searchParams.get('code')!, { redirect_uri: `${site}/callback` });
    expect((await callMcp(baseUrl, tokens.body.access_token)).status).toBe(200);
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    expect(agents.at(-1)).toMatchObject({ name: 'Claude Code', agent_type: 'mcp_client', status: 'active' });
    expect(page.complaints).toEqual([]);
    await page.close();
  });

  test('a client in a web page sees that its popup window with the consent page is open, and reads nothing in it', async () => {
    const client = await clientOf();
    const page = await signedIn();
    const address = client.address({ redirect_uri: `${site}/callback` }).replaceAll('&', '&amp;');
    html = `<button id="go" onclick="window.popup = open('${address}', '', 'width=500,height=700')">connect</button>`;
    await page.open(site);
    await page.click('#go');
    const read = `(() => { try { return popup.location.href } catch (error) { return error.name } })()`;
    await page.until(`${read} === 'SecurityError' || popup.closed`);
    expect(await page.value('popup.closed')).toBe(false);
    expect(await page.value(read)).toBe('SecurityError');
    await page.value('popup.close()');
    await page.until('popup.closed');
    await page.close();
  });

  test('a client in a web page hears from its popup window also when the owner signs in there first', async () => {
    const page = await browser.page(DESKTOP);
    const popup = await connectInPopup(world, page);
    await popup.click('#sign-in');
    await popup.until(`location.pathname === '/console/sign-in'`);
    const { url } = await signInLink(world.running.broker, organisation.owner);
    await popup.value(`location.assign(${JSON.stringify(url)})`);
    await popup.click('#allow');
    await page.until(`reported.includes('code=') && popup.closed`);
    await page.close();
  });

  test('an MCP client is marked in the console, and agents with a key of their own are not', async () => {
    const own = await organisation.agent({ name: 'own-key' });
    const name = 'claude-here';
    await new OAuthClient(world).tokens(browserOf(world, organisation.owner), {}, { name });
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    const { agent_id } = agents.find((one: { name: string }) => one.name === name);
    const page = await signedIn();
    await page.open(`${baseUrl}/console/agents`);
    const small = (id: string) => `document.querySelector('[data-agent="${id}"] .small').innerText`;
    await page.until(`document.querySelector('[data-agent="${own.agentId}"]') !== null`);
    expect(await page.value(small(agent_id))).toMatch(new RegExp(`^${agent_id} · MCP client`));
    expect(await page.value(small(own.agentId))).not.toContain('MCP client');
    await page.close();
  });

  test('a person who is not signed in signs in first and continues, and can refuse, on a phone', async () => {
    const client = await clientOf();
    const page = await browser.page(PHONE);
    await follow(page, client.address({ redirect_uri: `${site}/callback` }));
    await page.until(`document.body.innerText.includes('Sign in to connect')`);
    await expectAccessible(page, 'signing in to connect a client');
    await page.resize(PHONE);
    const consentAt = await page.value<string>('location.href');
    // The link is opened in another tab of the same browser, as from a terminal.
    const tab = await page.tab();
    await tab.open((await signInLink(world.running.broker, organisation.owner)).url);
    await isLive(tab);
    await tab.close();
    await page.value(`dispatchEvent(new Event('focus'))`);
    await page.until(`document.querySelector('#client')?.textContent === 'Claude Code'`);
    expect(await page.value('location.href')).toBe(consentAt);
    expect(await page.value('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await page.screenshot('consent-phone.png');
    await page.click('#refuse');
    await page.until(`document.body.innerText === 'back'`);
    const back = new URL(called.findLast((url) => url.startsWith('/callback'))!, site);
    expect(back.searchParams.get('error')).toBe('access_denied');
    await page.close();
  });

  test('a client that asks for more scopes goes on as the agent that it was, unless the owner chooses another', async () => {
    const name = 'asks-again';
    const client = await clientOf();
    const signedInAlready = browserOf(world, organisation.owner);
    await consent(signedInAlready, client.address({ redirect_uri: `${site}/callback` }), {
      name,
      scopes: ['mcp:read'],
    });
    const page = await signedIn();
    await follow(page, client.address({ redirect_uri: `${site}/callback` }));
    await page.until(`document.querySelector('#same-agent') !== null`);
    expect(await page.value(`document.querySelector('select').selectedOptions[0].innerText`)).toBe(
      `${name}, with what it may do already`,
    );
    expect(await page.value(`document.querySelector('#given') === null`)).toBe(true);
    await expectAccessible(page, 'a client that asks again');
    await page.click('#allow');
    await page.until(`document.body.innerText === 'back'`);
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    const own = authorisations.filter((one: { client: { id: string } }) => one.client.id === client.id);
    expect(own).toMatchObject([{ scopes: ['mcp:read', 'mcp:write'] }, { scopes: ['mcp:read'] }]);
    expect(new Set(own.map((one: { agent: { name: string } }) => one.agent.name))).toEqual(new Set([name]));
    await page.close();
  });

  test('an owner grants less than requested, and single scopes, on a phone; the client has only those', async () => {
    const client = await clientOf();
    const page = await signedIn(PHONE);
    await follow(page, client.address({ redirect_uri: `${site}/callback` }));
    await page.until(`document.querySelector('#client')?.textContent === 'Claude Code'`);
    const boxes = `Object.fromEntries([...document.querySelectorAll('#single .choice')].map((one) => [one.innerText.trim(), one.querySelector('input').checked]))`;
    const press = (scope: string) =>
      page.value(
        `[...document.querySelectorAll('#single .choice')].find((one) => one.innerText.trim() === ${JSON.stringify(scope)}).querySelector('input').click()`,
      );
    await expectAccessible(page, 'a client that asks, with its scopes');
    await page.resize(PHONE);
    await page.click('input[name="mcp:read"]');
    await page.click('input[name="mcp:write"]');
    await page.until(`document.querySelector('#allow:disabled') !== null`);
    await page.click('input[name="mcp:read"]');
    await page.until(`document.querySelector('#allow:enabled') !== null`);
    await page.click('input[value="single"]');
    // The single scopes start as the choice before had them.
    await page.until(`document.querySelector('#single') !== null`);
    expect(await page.value(boxes)).toEqual({ 'demo:read': true, 'demo:write': false, 'demo:delete': false });
    await press('demo:delete');
    await page.until(`document.querySelector('#count').innerText === 'It gets 2 scopes.'`);
    await press('demo:read');
    await page.until(`document.querySelector('#count').innerText === 'It gets 1 scope.'`);
    expect(await page.value('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    await page.screenshot('consent-single-phone.png');
    await page.click('#allow');
    await page.until(`document.body.innerText === 'back'`);
    const back = new URL(called.findLast((url) => url.startsWith('/callback'))!, site);
    const tokens = await client.redeem(back.searchParams.get('code')!, { redirect_uri: `${site}/callback` });
    expect(tokens.body.scope).toBe('mcp:read');
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    expect(authorisations[0]).toMatchObject({
      client: { id: client.id },
      scopes: ['mcp:read'],
      grants: [{ platformId: 'demo', scopes: ['demo:delete'] }],
    });
    expect(page.complaints).toEqual([]);
    await page.close();
  });

  test('a decision whose response was lost counts: the next click continues with it', async () => {
    const client = await clientOf();
    const page = await signedIn();
    await follow(page, client.address({ redirect_uri: `${site}/callback` }));
    await page.until(`document.querySelector('#allow') !== null`);
    const lost = { allow: true, name: 'lost answer', grants: [] };
    await page.value(`fetch(location.pathname + '/decision', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-svc-csrf': '1' },
      body: ${JSON.stringify(JSON.stringify(lost))},
    }).then(() => true)`);
    await page.click('#allow');
    await page.until(`document.body.innerText === 'back'`);
    const back = new URL(called.findLast((url) => url.startsWith('/callback'))!, site);
    const tokens = await client.redeem(back.searchParams.get('code')!, { redirect_uri: `${site}/callback` });
    expect((await callMcp(baseUrl, tokens.body.access_token)).status).toBe(200);
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    const own = authorisations.filter((one: { client: { id: string } }) => one.client.id === client.id);
    expect(own).toMatchObject([{ agent: { name: 'lost answer' } }]);
    await page.close();
  });

  test('the sign-in page returns to the consent page', async () => {
    const client = await clientOf();
    const page = await browser.page(DESKTOP);
    await follow(page, client.address({ redirect_uri: `${site}/callback` }));
    await page.click('#sign-in');
    await page.until(`location.pathname === '/console/sign-in'`);
    const { hash } = new URL((await signInLink(world.running.broker, organisation.owner)).url);
    await page.value(`location.hash = ${JSON.stringify(hash)}`);
    await page.until(`document.querySelector('#client')?.textContent === 'Claude Code'`);
    await page.close();
  });

  test('another site can neither frame the consent page nor decide with a form', async () => {
    const client = await clientOf();
    const page = await signedIn();
    await follow(page, client.address({ redirect_uri: `${site}/callback` }));
    await page.until(`document.querySelector('#client') !== null`);
    const address = await page.value<string>('location.href');
    const before = (await organisation.ask('GET', '/owner/agents')).body.agents.length;
    html = `<iframe id="frame" src="${address}"></iframe>
      <form id="form" method="post" enctype="text/plain" action="${address}/decision">
        <input name='{"allow":true,"name":"forged","grants":[],"x":"' value='"}'></form>`;
    await page.open(site);
    await page.until(`document.querySelector('#frame') !== null`);
    await page.until(`document.readyState === 'complete'`);
    // Chromium's replacement page has another origin, so its content cannot be read.
    await vi.waitUntil(() => page.complaints.some((one) => /frame/i.test(one)), { timeout: 10_000 });
    await page.value(`document.querySelector('#form').submit()`);
    const refused = `/missing_token|forbidden|invalid_request/.test(document.body?.innerText ?? '')`;
    await page.until(`location.href.endsWith('/decision') && ${refused}`);
    expect((await organisation.ask('GET', '/owner/agents')).body.agents.length).toBe(before);
    await page.close();
  });
});
