/** Signing in at an identity provider with a real browser, whose cookies follow its vendor's rules and not the test's. */
import { expect, test } from 'vitest';
import { describeInChromium, openPage, type Page } from '../world/browser/chromium.ts';
import { hold, openHeld, text } from '../world/browser/held-page.ts';
import { connectInPopup } from '../world/browser/popup-client.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { startLyingProvider } from '../world/servers/lying-provider.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

/** Starts a broker whose identity provider signs everybody in as Ann. */
async function worldOfAnn() {
  const provider = await startLyingProvider();
  provider.claims = { email: 'ann@acme.example', email_verified: true };
  return { provider, world: await startWorld('sqlite', provider.settings) };
}

const inviteAnn = (organisation: Organisation, role: string) =>
  organisation.ask('POST', '/owner/owners', { email: 'ann@acme.example', role });

/** As `worldOfAnn`, with two organisations that have Ann as an owner. */
async function worldOfTwoOrganisations(role: string) {
  const { world } = await worldOfAnn();
  const [oldest, other] = [await world.organisation(), await world.demoOrganisation({ name: 'globex' })];
  for (const organisation of [oldest, other]) await inviteAnn(organisation, role);
  await world.db.updateTable('organisations').set({ created_at: 1 }).where('id', '=', oldest.id).execute();
  return { world, oldest, other };
}

/** Returns the page on which an MCP client asks for consent, after the sign-in at the provider. */
async function signInToConsent(world: World): Promise<Page> {
  const client = new OAuthClient(world);
  await client.register({ client_name: 'Claude Code', redirect_uris: ['http://127.0.0.1/callback'] });
  const page = await openPage({ width: 800, height: 600 });
  await page.open(client.address({ redirect_uri: 'http://127.0.0.1/callback' }));
  await page.click('#sign-in');
  await page.click('#at-provider');
  return page;
}

describeInChromium('a real browser', () => {
  test('returns from the other site signed in, with the session in a cookie that no script can read', async () => {
    const { world, provider } = await worldOfAnn();
    const organisation = await world.organisation();
    await inviteAnn(organisation, 'viewer');
    const { baseUrl } = world.running;
    // The provider is on another site than the broker, so that SameSite applies.
    expect([new URL(provider.issuer).hostname, new URL(baseUrl).hostname]).toEqual(['127.0.0.1', 'localhost']);
    const page = await openPage({ width: 800, height: 600 });
    await page.open(`${baseUrl}/console/oidc/start`);
    await page.until(`location.pathname === '/console'`);
    // A page without scripts, which would navigate away once the session ends.
    await page.open(`${baseUrl}/console/base.css`);
    await page.until(`location.pathname === '/console/base.css' && document.readyState === 'complete'`);
    const me = await page.value<{ email: string; sign_in: string }>(`fetch('/owner/me').then((one) => one.json())`);
    expect(me).toMatchObject({ email: 'ann@acme.example', sign_in: 'oidc' });
    expect(await page.value('document.cookie')).toBe('');
    // The browser's own headers satisfy the broker's checks.
    const out = `fetch('/owner/sign-out', { method: 'POST', headers: { 'X-Svc-Csrf': '1' } }).then((one) => one.status)`;
    expect(await page.value(out)).toBe(200);
    expect(await page.value(`fetch('/owner/me').then((one) => one.status)`)).toBe(401);
    // A person who is not invited reads the reason on a page of the broker.
    provider.claims = { sub: 'eve', email: 'eve@elsewhere.example', email_verified: true };
    await page.open(`${baseUrl}/console/oidc/start`);
    await page.until(
      `document.body.innerText.includes('eve@elsewhere.example') && document.querySelector('a')?.getAttribute('href') === '/console/sign-in'`,
    );
    expect(page.complaints.filter((complaint) => !/status of 40[13]|favicon/.test(complaint))).toEqual([]);
  });

  test('pages promise a sign-in or decision by passkey only where that is possible', async () => {
    const { world } = await worldOfAnn();
    const organisation = await world.demoOrganisation();
    await inviteAnn(organisation, 'approver');
    const page = await openPage({ width: 800, height: 600 });
    const id = await hold(await organisation.agent());
    await openHeld(page, world, id);
    await page.until(`document.querySelector('.said').innerText.includes('only a passkey of the agent')`);
    await page.open(`${world.running.baseUrl}/console/oidc/start`);
    await page.until(`location.pathname === '/console'`);
    await openHeld(page, world, id);
    await page.until(`document.querySelector('.offer')?.innerText.includes('decide calls of agents that you own')`);
    expect(await text(page, '.offer')).not.toContain('sign in next time');
    await page.authenticator();
    await page.open(`${world.running.baseUrl}/console/passkeys`);
    await page.until(`document.querySelector('.passkeys p')?.innerText.startsWith('You sign in at 127.0.0.1')`);
    // The provider did not state when the person signed in, so the page asks for a new sign-in, and continues afterwards.
    await page.click('.enrol button');
    await page.click('#sign-in-again');
    await page.until(`location.pathname === '/console/passkeys' && document.querySelector('#reauthenticate') === null`);
    await page.click('.enrol button');
    await page.until(`document.querySelector('#passkeys') !== null`);
    expect(await text(page, '#said')).toMatch(/can decide from now on/);
    expect(await text(page, 'main')).not.toMatch(/With a passkey you sign in/);
  });

  test('the sign-in page leads to the provider, and back to the page that was requested at first', async () => {
    const { world } = await worldOfAnn();
    const organisation = await world.organisation();
    await inviteAnn(organisation, 'viewer');
    const page = await openPage({ width: 800, height: 600 });
    await page.open(`${world.running.baseUrl}/console/activity?result=denied`);
    await page.until(`location.pathname === '/console/sign-in'`);
    await page.click('#at-provider');
    await page.until(`location.pathname + location.search === '/console/activity?result=denied'`);
    await page.until(`document.querySelector('h1')?.innerText === 'Activity'`);
  });

  test('a person who comes back from the provider with Back and starts again still gets to the page requested at first', async () => {
    const { world } = await worldOfAnn();
    await inviteAnn(await world.organisation(), 'viewer');
    const page = await openPage({ width: 800, height: 600 });
    await page.open(`${world.running.baseUrl}/console/activity?result=denied`);
    await page.until(`location.pathname === '/console/sign-in' && document.querySelector('#at-provider') !== null`);
    // Two clicks see the same storage as a click, Back from a provider that shows a page, and another click.
    const leaves = `(() => {
      const link = document.querySelector('#at-provider');
      const stays = (event) => event.preventDefault();
      navigation.addEventListener('navigate', stays, { once: true });
      link.click();
    })()`;
    await page.value(leaves);
    await page.click('#at-provider');
    await page.until(`location.pathname + location.search === '/console/activity?result=denied'`);
    await page.until(`document.querySelector('h1')?.innerText === 'Activity' && sessionStorage.length === 0`);
  });

  test('a person in several organisations gets from the link of a held call to the organisation of that call', async () => {
    const { world, other } = await worldOfTwoOrganisations('approver');
    const page = await openPage({ width: 800, height: 600 });
    await openHeld(page, world, await hold(await other.agent()));
    await page.click('.sign-in');
    await page.click('#at-provider');
    await page.until(`document.querySelector('.said')?.innerText === 'You are signed in to another organisation.'`);
    expect(await text(page, '.switch')).toBe('Switch to globex');
    await page.click('.switch');
    await page.until(`document.querySelector('button.approve:not(.passkey)')?.innerText === 'Approve…'`);
    expect(await page.value('location.pathname')).toMatch(/^\/approve\//);
  });

  test('a person whom an MCP client sends to the consent page is back there after the sign-in', async () => {
    const { world } = await worldOfAnn();
    const organisation = await world.demoOrganisation();
    await inviteAnn(organisation, 'admin');
    const page = await signInToConsent(world);
    await page.until(`document.querySelector('#client')?.textContent === 'Claude Code'`);
    expect(await page.value('location.pathname')).toMatch(/^\/oauth\/consent\//);
  });

  test('a client in a web page hears from its popup window after the sign-in there, also when the first one failed', async () => {
    const { world, provider } = await worldOfAnn();
    await inviteAnn(await world.demoOrganisation(), 'admin');
    const page = await openPage({ width: 800, height: 600 });
    const popup = await connectInPopup(world, page);
    const ann = provider.claims;
    provider.claims = { sub: 'eve', email: 'eve@elsewhere.example', email_verified: true };
    await popup.click('#sign-in');
    await popup.click('#at-provider');
    await popup.until(`document.querySelector('h1').innerText === 'Not signed in'`);
    provider.claims = ann;
    await popup.click('a.button');
    await popup.click('#at-provider');
    await popup.click('#allow');
    await page.until(`reported.includes('code=') && popup.closed`);
  });

  test('a person in several organisations sees in which one an MCP client would be an agent, and can switch', async () => {
    const { world, oldest, other } = await worldOfTwoOrganisations('admin');
    const page = await signInToConsent(world);
    await page.until(`document.querySelector('#organisation') !== null`);
    expect(await text(page, '#organisation')).not.toBe('globex');
    await page.click('.switch');
    await page.until(`document.querySelector('#organisation')?.innerText === 'globex'`);
    await page.click('#allow');
    await page.until(`location.port === ''`);
    const agents = async (organisation: typeof oldest) =>
      (await organisation.ask('GET', '/owner/agents')).body.agents.map(({ name }: { name: string }) => name);
    expect([await agents(oldest), await agents(other)]).toEqual([[], ['Claude Code']]);
  });
});
