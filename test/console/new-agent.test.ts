/** Inviting an agent from an empty organisation, with the mouse and with the keyboard alone, until it makes its first call. */
import { expect, test } from 'vitest';
import { clientNamed } from '../../bin/clients/clients.ts';
import { CLIENTS } from '../../broker/console/static/new-agent/lines.js';
import { jsonPost, send } from '../world/agent.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { goTo, has, openConsole } from '../world/browser/console.ts';
import { newRsaPair } from '../world/rsa.ts';
import { givenWorld, shared } from '../world/world.ts';

test('the console offers the clients of the command line, under the same names', () => {
  for (const [id, title] of CLIENTS) expect(clientNamed(id).title).toBe(title);
});

describeInChromium('inviting an agent in the console', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());
  const line = (page: Page) => page.value<string>(`document.querySelector('#invited .command pre').innerText`);
  const bind = async (token: string) => {
    const { publicKey } = newRsaPair();
    const answer = await send(
      `${world.running.baseUrl}/v1/invites/bind`,
      jsonPost({ bind_secret: token, public_key_pem: publicKey.export({ format: 'pem', type: 'spki' }) }),
    );
    expect(answer.status, answer.text).toBe(200);
  };

  test('with the mouse: an agent is invited in an empty organisation, brings its key, and has the grants that were chosen', async () => {
    const organisation = await world.demoOrganisation();
    const page = await openConsole(world, browser, organisation.owner);
    await page.click('nav a[href="/console/agents"]');
    await page.click('.empty a.primary');
    await page.until(`location.pathname === '/console/agents/new'`);
    await page.click('#agent-name');
    await page.type('triage bot');
    await page.until(`document.querySelectorAll('#add-platform option').length === 2`);
    await page.value(`(() => {
        const found = document.querySelector('#add-platform');
        found.value = 'demo';
        found.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
    await page.click('#add-grant');
    await has(page, '#invite-form', 'Choose what it may do on demo');
    expect(await page.value(`document.querySelector('#invite').disabled`)).toBe(true);
    await page.click('input[name="demo:read"]');
    await expectAccessible(page, 'the form of a new agent');
    await page.click('#invite');
    await page.until(`document.querySelector('#invited .command') !== null`);
    expect(await line(page)).toMatch(
      /^npx agent-broker connect claude-code --name triage-bot --url http:\/\/\S+ --invite inv_\S+$/,
    );
    for (const [id] of CLIENTS) {
      await page.click(`[data-client="${id}"]`);
      expect(await line(page)).toContain(`connect ${id} `);
    }
    await page.click('[data-client="sdk"]');
    await has(page, '#invited', 'AGENT_BROKER_PROFILE="$HOME/.agent-broker/profiles/triage-bot.json"');
    await page.click('[data-client="plain"]');
    await expectAccessible(page, 'the lines of a new agent');
    await bind((await line(page)).split('--invite ')[1] ?? '');
    await has(page, '#bound', 'triage bot is there');
    await page.click('#bound a');
    await has(page, 'h1', 'triage bot Active');
    await has(page, '#grants', 'demo:read');
    expect(page.complaints).toEqual([]);
  });

  test('a name that is already in use is refused', async () => {
    const organisation = await world.organisation();
    await organisation.agent({ name: 'triage' });
    const page = await openConsole(world, browser, organisation.owner);
    await goTo(page, `${world.running.baseUrl}/console/agents/new`);
    await page.click('#agent-name');
    await page.type('triage');
    await page.click('#invite');
    await has(page, '#invite-form [role="alert"]', 'triage');
    await page.click('#agent-name');
    await page.type('-2');
    await page.until(`document.querySelector('#invite-form [role="alert"]') === null`);
    await page.click('#invite');
    await has(page, '#invited', 'triage-2');
  });

  test('a person without the admin role reads why they cannot invite agents', async () => {
    const organisation = await world.organisation();
    const page = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await goTo(page, `${world.running.baseUrl}/console/agents/new`);
    await has(page, 'main', 'an admin can invite agents');
    expect(await page.value(`document.querySelector('#invite')`)).toBeNull();
  });
});
