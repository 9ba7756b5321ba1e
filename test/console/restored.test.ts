/** The review of a restored store in a real browser: the banner on every page, the list, and resuming calls. */
import { expect, test } from 'vitest';
import { endPendingItems } from '../../broker/store/end-pending-items.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, openConsole, says, write } from '../world/browser/console.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

describeInChromium('a restored store in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const browser = shared(() => startBrowser());

  test('every page shows that the store was restored; an admin sees what may act, and resumes calls', async () => {
    const agent = await organisation.agent({ name: 'worker' });
    const now = Date.now();
    await world.db
      .transaction()
      .execute((tx) => endPendingItems(tx, { now, nothingSince: false, madeAt: now - 3_600_000 }));
    expect((await agent.act(READ)).status).toBe(503);
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await viewer.until(`document.querySelector('#store-restored') !== null`);
    await viewer.click('#to-restored');
    await viewer.until(`document.querySelector('#ask-admin') !== null`);
    expect(await viewer.value(`document.querySelector('#end-review')`)).toBeNull();

    const page = await openConsole(world, browser, organisation.owner);
    await goTo(page, `${world.running.baseUrl}/console/agents`);
    await page.until(`document.querySelector('#store-restored') !== null`);
    await page.click('#to-restored');
    await page.until(`location.pathname === '/console/restored' && document.querySelector('#end-review') !== null`);
    expect(await page.value<string>(`document.querySelector('#restored-agents').innerText`)).toMatch(
      /worker\s+active/i,
    );
    await expectAccessible(page, '/console/restored');
    await write(page, '#restored-why', 'Nothing was suspended since');
    await page.value(`(() => {
      const whole = window.fetch;
      window.fetch = async (asked, options) => {
        if (!String(asked).startsWith('/owner/restored')) return whole(asked, options);
        window.failed = true;
        return Response.json({ error: 'unavailable', detail: 'Not now.' }, { status: 503 });
      };
      window.again = () => { window.fetch = whole; };
    })()`);
    // A read that fails replaces neither the list nor what is written below it.
    await page.until('window.failed === true', 30_000);
    await page.value('new Promise((over) => setTimeout(over, 100))');
    expect(await page.value(`document.querySelector('#restored-why')?.value`)).toBe('Nothing was suspended since');
    await page.value('window.again()');
    await page.click('#end-review');
    await says(page, 'Calls go on.');
    expect((await agent.act(READ)).status).toBe(200);
    await page.until(`document.querySelector('main').innerText.includes('Nothing waits for a review')`);
  });
});
