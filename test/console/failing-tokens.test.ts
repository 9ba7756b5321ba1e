/** The console shows a connection that gets no token from its authorization server, and why. */
import { expect, test } from 'vitest';
import { givenTokenWorld, READ } from '../token-source/token-world.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { openConsole, PHONE } from '../world/browser/console.ts';
import { shared } from '../world/world.ts';

describeInChromium('a connection that gets no token', () => {
  const { host, world, organisation, apply, agent: newAgent } = givenTokenWorld('sqlite');
  const browser = shared(() => startBrowser());

  test('a connection without a token says since when and why, and no longer does once it gets one', async () => {
    await apply('client_credentials');
    const agent = await newAgent();
    host.instead = { status: 500, body: 'CANARY' };
    await agent.act(READ);
    world.clock.skewMs += 62_000;
    await agent.act(READ);
    const page = await openConsole(world, browser, organisation.owner);
    await page.resize(PHONE);
    await page.open(`${world.running.baseUrl}/console/connections`);
    await page.until(`document.querySelector('#connections .failing') !== null`);
    const shown = await page.value(`document.querySelector('#connections').innerText`);
    expect(shown).toContain('Needs attention');
    expect(shown).toMatch(/no token since .+: The token endpoint of reports issued no token: it answered 500\./);
    expect(shown).not.toMatch(/CANARY|refused its secret/);
    expect(await page.value('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    host.instead = undefined;
    world.clock.skewMs += 3_000;
    await page.click('#connections .test');
    await page.until(`document.querySelector('#connections .failing') === null`);
    expect(await page.value(`document.querySelector('#connections').innerText`)).not.toContain('Needs attention');
    expect(page.complaints).toEqual([]);
    await page.close();
  });
});
