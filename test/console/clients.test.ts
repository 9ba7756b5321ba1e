/** The console's page of MCP clients: which clients are authorised, by whom and for what, and revoking one. */
import { decodeJwt } from 'jose';
import { expect, test } from 'vitest';
import { REFRESH_LEEWAY_MS } from '../../broker/oauth-server/adapter.ts';
import { expireUnusableAuthorisations } from '../../broker/store/mcp-authorisations.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, openConsole, PHONE, says } from '../world/browser/console.ts';
import { askConsent, browserOf, openConsent } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { DEMO_RULES, givenWorld, shared } from '../world/world.ts';

const HOSTILE = '<img src=x onerror=alert(1)>';

describeInChromium('MCP clients in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  const go = (path: string, on = page) => goTo(on, world.running.baseUrl + path);
  const works = async (token: string) => (await callMcp(world.running.baseUrl, token)).status;
  /** Authorises a client. Returns its tokens and the selector of its row. */
  const connected = async (clientName: string, decision: Record<string, unknown> = {}) => {
    const client = new OAuthClient(world);
    await client.register({ client_name: clientName });
    const tokens = await client.tokens(browserOf(world, organisation.owner), {}, decision);
    return { client, tokens, agentId: String(decodeJwt(tokens.access_token).sub), row: await rowOf(client) };
  };
  const rowOf = async ({ id }: OAuthClient) => {
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    return `[data-client="${authorisations.find((one: { client: { id: string } }) => one.client.id === id).id}"]`;
  };
  const textOf = (selector: string, on = page) => on.value<string>(`document.querySelector('${selector}').innerText`);

  test('an empty page explains how to connect a client, with the address of this broker', async () => {
    await go('/console/clients');
    expect(await textOf('main')).toContain(`claude mcp add --transport http broker ${world.running.baseUrl}/mcp`);
  });

  test('the page shows each client with the person, the agent, the permissions and the time of its last use', async () => {
    const grants = [{ platformId: 'demo', scopes: ['demo:read', 'demo:delete'] }];
    const { row, agentId } = await connected('Claude Code', { name: 'helper', grants, scopes: ['mcp:read'] });
    await go('/console/agents');
    await page.click('#to-clients');
    await page.until(`location.pathname === '/console/clients' && document.querySelector('${row}') !== null`);
    expect(await page.value('document.title')).toContain('MCP clients');
    const shown = await textOf(row);
    for (const words of [
      'Claude Code',
      'Has access',
      'Acts as helper',
      'sends you back to 127.0.0.1',
      `Approved by ${organisation.owner.email} on`,
      'last used just now',
      'until',
      'Granted on demo: demo:read, demo:delete.',
      'It may read what it is granted, and ask for access.',
    ])
      expect(shown).toContain(words);
    expect(shown).not.toContain('change and delete');
    await page.screenshot('clients.png');
    await page.click(`${row} .what a`);
    await page.until(`location.pathname === '/console/agents/${agentId}'`);
  });

  test('revoking asks for confirmation and applies to the next request; the agent stays active', async () => {
    const { row, tokens, agentId, client } = await connected('Cursor');
    await go('/console/clients');
    await page.click(`${row} .revoke`);
    await page.until(`document.querySelector('dialog')?.innerText.includes('is refused from its next request on')`);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect(await works(tokens.access_token)).toBe(200);
    // The focus is back on the button, for use by keyboard alone.
    await page.press('Enter');
    await page.until(`document.querySelector('dialog') !== null`);
    await page.click('#revoke');
    await says(page, 'The access of Cursor is revoked.');
    expect(await works(tokens.access_token)).toBe(401);
    expect((await client.refresh(tokens.refresh_token)).body.error).toBe('invalid_grant');
    await page.until(`document.querySelector('#over summary') !== null`);
    await page.click('#over summary');
    await page.until(`document.querySelector('#clients-over ${row}') !== null`);
    await page.until(`document.querySelector('${row}').innerText.includes('an owner revoked it.')`);
    expect(await page.value(`document.querySelectorAll('${row} button').length`)).toBe(0);
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    expect(agents.find(({ agent_id }: { agent_id: string }) => agent_id === agentId).status).toBe('active');
  });

  test('a client that another owner revoked meanwhile is reported, and not revoked twice', async () => {
    const { row, client, tokens } = await connected('VS Code');
    await go('/console/clients');
    await page.click(`${row} .revoke`);
    await client.post('/oauth/revoke', { client_id: client.id, token: tokens.refresh_token });
    await page.click('#revoke');
    await page.until(`document.querySelector('dialog [role=alert]')?.innerText.includes('has ended already')`);
    await page.press('Escape');
    await page.click('#over summary');
    await page.until(`document.querySelector('#clients-over ${row}') !== null`);
  });

  test('the page shows why an authorisation ended: token revoked by the client, refresh token reused, agent revoked, never used', async () => {
    const returned = await connected('returned');
    await returned.client.post('/oauth/revoke', {
      client_id: returned.client.id,
      token: returned.tokens.access_token,
    });
    const copied = await connected('copied');
    await copied.client.refresh(copied.tokens.refresh_token);
    world.clock.skewMs = REFRESH_LEEWAY_MS + 1_000;
    await copied.client.refresh(copied.tokens.refresh_token);
    world.clock.skewMs = 0;
    const orphaned = await connected('orphaned');
    await organisation.ask('POST', `/owner/agents/${orphaned.agentId}/revoke`, {});
    const held = await connected('held');
    await organisation.ask('POST', `/owner/agents/${held.agentId}/suspend`, {});
    const unused = new OAuthClient(world);
    const person = browserOf(world, organisation.owner);
    await unused.register();
    const decision = { allow: true, name: 'unused', grants: [] };
    await askConsent(person, await openConsent(person, unused.address()), 'decision', decision);
    const now = world.running.broker.clock();
    await go('/console/clients');
    expect(await textOf(await rowOf(unused))).toContain('not used yet');
    await expireUnusableAuthorisations(world.db, { now: now + 1, before: now });
    await go('/console/clients');
    await page.click('#over summary');
    await page.until(`document.querySelector('#clients-over ${returned.row}') !== null`);
    expect(await textOf(returned.row)).toContain('the client revoked its own access.');
    expect(await textOf(copied.row)).toContain('used twice, so somebody else may have a copy');
    expect(await textOf(orphaned.row)).toContain('its agent was revoked.');
    expect(await textOf(await rowOf(unused))).toContain('none of its tokens was valid at that time');
    expect(await textOf(held.row)).toContain('Its agent is suspended');
    expect(await page.value(`document.querySelector('${held.row} .revoke') !== null`)).toBe(true);
    await page.screenshot('clients-over.png');
  });

  test('the row of an agent links to the clients of that agent only', async () => {
    const { row, agentId } = await connected('one of many', { name: 'alone' });
    await go('/console/agents');
    await page.click(`[data-agent="${agentId}"] a[href^="/console/clients"]`);
    await page.until(`document.querySelector('${row}') !== null`);
    expect(await page.value(`document.querySelectorAll('[data-client]').length`)).toBe(1);
    await page.click('.clients a[href="/console/clients"]');
    await page.until(`document.querySelectorAll('[data-client]').length > 1`);
  });

  test('the name of a client is shown as text and fits on a phone; a person without the admin role has no buttons', async () => {
    const { row } = await connected(`${HOSTILE}${'x'.repeat(60)}`);
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'), PHONE);
    await go('/console/clients', viewer);
    expect(await textOf(row, viewer)).toContain(HOSTILE);
    expect(await viewer.value(`document.querySelectorAll('main img').length`)).toBe(0);
    expect(await viewer.value(`document.querySelectorAll('.clients button').length`)).toBe(0);
    expect(await textOf('main', viewer)).toContain('an admin can revoke access');
    const admin = await openConsole(world, browser, organisation.owner, PHONE);
    await go('/console/clients', admin);
    for (const on of [viewer, admin]) {
      expect(await on.value('document.documentElement.scrollWidth')).toBeLessThanOrEqual(PHONE.width);
      await on.click('#over summary');
      expect(await on.value('document.documentElement.scrollWidth')).toBeLessThanOrEqual(PHONE.width);
      expect(on.complaints).toEqual([]);
    }
    await admin.screenshot('clients-phone.png');
    await admin.resize(PHONE, 'phone');
    // A touch target needs at least 40 pixels.
    const height = `document.querySelector('${row} .revoke').getBoundingClientRect().height`;
    expect(await admin.value(height)).toBeGreaterThanOrEqual(40);
    // The accessible name of each button includes the client.
    expect(await admin.value(`document.querySelector('${row} .revoke').textContent`)).toContain(HOSTILE);
  });

  test('the page caused no violation of its Content-Security-Policy', () => {
    // Except for the refused request above, which the browser logs as an error.
    expect(page.complaints.filter((one) => !one.includes('409 (Conflict)'))).toEqual([]);
  });
});
