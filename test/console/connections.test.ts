/** An owner connects a platform in a real browser: from the button to a real OAuth server on another site, and back. */
import { beforeAll, expect, test } from 'vitest';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { goTo, isLive, openConsole, PHONE, says } from '../world/browser/console.ts';
import { CLIENT_ID, CLIENT_SECRET, startAuthorizationServer } from '../world/servers/authorization-server.ts';
import { givenWorld, shared } from '../world/world.ts';

const READ = { platform: 'docs', endpoint: '/items', method: 'GET', scope: 'docs:read' };

describeInChromium('connections in a browser', () => {
  let connection: string;
  const server = shared(() => startAuthorizationServer());
  const world = givenWorld('sqlite', () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  beforeAll(() => {
    server.serve(world.running.baseUrl);
  });
  const organisation = shared(() => world.organisation());
  beforeAll(async () => {
    await organisation.ask('POST', '/owner/governance/apply', {
      text: JSON.stringify({
        platforms: {
          docs: {
            kind: 'rest',
            base_url: `${server.issuer}/api`,
            auth: {
              type: 'oauth2',
              issuer: server.issuer,
              client_id: { env: 'ID' },
              client_secret: { env: 'SECRET' },
              scopes: ['openid', 'email', 'docs.read'],
            },
            scopes: { 'docs:read': ['GET /items'] },
          },
        },
        connections: { main: { platform: 'docs' } },
      }),
      values: { 'env:ID': CLIENT_ID, 'env:SECRET': CLIENT_SECRET },
    });
    connection = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
  });
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  const at = (query = '') => `${world.running.baseUrl}/console/connections${query}`;
  const row = () => `[data-connection="${connection}"]`;
  const shows = (words: string) =>
    page.until(`document.querySelector('${row()}').innerText.includes(${JSON.stringify(words)})`);
  const agentHere = async () =>
    organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { docs: { scopeList: ['docs:read'] } },
    });

  /** Signs in at the OAuth server when it asks for that, and consents. */
  async function consent(on: Page, login: string) {
    await on.until(`location.origin === ${JSON.stringify(server.issuer)} && document.querySelector('form') !== null`);
    await on.value(`(() => {
        const form = document.querySelector('form');
        if (form.login) { form.login.value = ${JSON.stringify(login)}; form.password.value = 'x'; }
        form.submit();
      })()`);
  }

  test('Connect leads to an OAuth server on another site and back; afterwards the agent can make calls', async () => {
    await goTo(page, at());
    await shows('Not connected');
    await page.click(`${row()} .connect`);
    // The site is shown before it is opened.
    await page.until(`document.querySelector('dialog .host')?.innerText === ${JSON.stringify(server.address)}`);
    expect(await page.value('location.pathname')).toBe('/console/connections');
    await page.click('#leave');
    await consent(page, 'ann');
    await page.until(
      `location.pathname.startsWith('/interaction/') && document.querySelector('form') !== null && !document.querySelector('form').login`,
    );
    await consent(page, 'ann');
    await page.until(`location.pathname === '/console/connections' && document.querySelector('${row()}') !== null`);
    await shows('Not tried yet');
    await shows('ann@docs.example');
    await shows('docs.read');
    await says(page, '“main” is connected.');
    expect(await page.value('location.search')).toBe('');
    expect((await (await agentHere()).act(READ)).status).toBe(200);
    // Violations of the console only: the OAuth server's own pages request external fonts, which its policy forbids here.
    expect(page.complaints.filter((one) => one.includes(world.running.baseUrl))).toEqual([]);
    await page.screenshot('connections');
  });

  test('a link that an agent was given opens the connection with the focus on its button', async () => {
    await goTo(page, at(`?connect=${connection}`));
    await page.until(`document.activeElement?.matches('${row()} .connect')`);
  });

  test('Disconnect asks for confirmation, and the next call is refused', async () => {
    const agent = await agentHere();
    await page.click(`${row()} .disconnect`);
    await page.until(`document.querySelector('dialog')?.innerText.includes('has the platform revoke them')`);
    await page.press('Escape');
    expect((await agent.act(READ)).status).toBe(200);
    await page.click(`${row()} .disconnect`);
    await page.click('#disconnect');
    await says(page, '“main” is disconnected.');
    await shows('Not connected');
    expect((await agent.act(READ)).status).toBe(412);
    expect(server.seen).toContain('POST /token/revocation');
  });

  test('a person who declines at the OAuth server comes back and reads that', async () => {
    await goTo(page, at());
    await page.click(`${row()} .connect`);
    await page.until(`document.querySelector('#leave') !== null`);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await page.click(`${row()} .connect`);
    await page.until(`document.querySelector('#leave') !== null`);
    await page.click('#leave');
    await page.until(
      `location.pathname.startsWith('/interaction/') && document.querySelector('a[href$="/abort"]') !== null`,
    );
    await page.click('a[href$="/abort"]');
    await page.until(
      `document.querySelector('h1')?.innerText === 'Not connected' && document.body.innerText.includes('access_denied')`,
    );
    await page.click('a.button');
    await page.until(`location.pathname === '/console/connections'`);
  });

  test('a browser without a session cannot finish a flow that another browser started', async () => {
    const begun = await organisation.ask('POST', `/owner/connections/${connection}/oauth/start`);
    const stranger = await browser.page({ width: 800, height: 600 });
    await stranger.open(begun.body.authorization_url);
    await consent(stranger, 'victim');
    await stranger.until(`document.querySelector('form') !== null && !document.querySelector('form').login`);
    await consent(stranger, 'victim');
    await stranger.until(
      `document.querySelector('h1')?.innerText === 'Not connected' && document.body.innerText.includes('This browser is not signed in at')`,
    );
    await stranger.close();
  });

  test('a person who may not connect sees no button, and the page fits on a phone', async () => {
    const viewer = await organisation.addOwner('viewer');
    const theirs = await browser.page(PHONE);
    await theirs.open((await signInLink(world.running.broker, viewer)).url);
    await isLive(theirs);
    await goTo(theirs, at());
    await theirs.until(`document.querySelector('${row()}') !== null`);
    expect(await theirs.value(`document.querySelectorAll('#connections button').length`)).toBe(0);
    expect(await theirs.value('document.documentElement.scrollWidth')).toBeLessThanOrEqual(PHONE.width);
    await theirs.screenshot('connections-phone');
    await theirs.close();
  });
});
