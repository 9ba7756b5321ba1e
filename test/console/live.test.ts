/** The console's event stream, and the console while the stream is unavailable. */
import { expect, test } from 'vitest';
import { expectAccessible, overflowing, unreadable } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import {
  approve,
  card,
  DESKTOP,
  isLive,
  look,
  openConsole,
  says,
  signInByLink,
  WAITING,
} from '../world/browser/console.ts';
import { sized } from '../world/runner/thorough.ts';
import { givenWorld, shared } from '../world/world.ts';

const TABS = sized(8, 10);

describeInChromium('a live console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const hold = () =>
    agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } });

  test('the page shows when the broker is unavailable, and updates by itself when the broker is back', async () => {
    await world.running.stop();
    await page.until(`document.querySelector('#liveness').dataset.live === 'false'`);
    expect(await page.value(`document.querySelector('#liveness').innerText`)).toContain('Not live');
    await page.until(`document.querySelector('main').innerText.includes('The broker does not answer')`);
    await expectAccessible(page, 'a console that is not live');
    for (const width of [360, 390, 430]) {
      await page.resize({ width, height: 740 }, 'phone');
      expect([...(await overflowing(page)), ...(await unreadable(page))], String(width)).toEqual([]);
    }
    await page.resize(DESKTOP);
    expect(await page.value(`document.querySelector('#liveness').innerText`)).toContain('asking every 5 s');
    await world.restart();
    const id = await hold();
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await isLive(page);
    expect(await page.value(`document.querySelector('main').innerText`)).not.toContain('does not answer');
    await organisation.deny(id);
    await page.until(`${WAITING} === 0`);
  });

  test(`${TABS} tabs share one event stream; when the tab that holds it closes, another opens it`, async () => {
    const tabs = await Promise.all(Array.from({ length: TABS - 1 }, () => page.tab()));
    for (const tab of tabs) {
      await tab.open(`${world.running.baseUrl}/console`);
      await isLive(tab);
    }
    // With a stream per tab, they would exceed the browser's limit of six connections to one site, and requests would wait forever.
    const first = await hold();
    for (const tab of [page, ...tabs]) await tab.until(`document.querySelector('${card(first)}') !== null`);
    await page.open('about:blank');
    await tabs.shift()!.close();
    const second = await hold();
    for (const tab of tabs) await tab.until(`document.querySelector('${card(second)}') !== null`);
    for (const tab of tabs) await tab.close();
    await page.open(`${world.running.baseUrl}/console`);
    await isLive(page);
    for (const id of [first, second]) await organisation.deny(id);
    await page.until(`${WAITING} === 0`);
  }, 180_000);

  test('going back to the page shows the current state', async () => {
    await page.open(`${world.running.baseUrl}/console/sign-in`);
    await page.until(`document.querySelector('#by-passkey') !== null`);
    const id = await hold();
    // Not immediately: the response to a request of the page is lost when the page is left.
    await page.value('void setTimeout(() => history.back(), 0)');
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await isLive(page);
    await organisation.deny(id);
    await page.until(`${WAITING} === 0`);
  });

  test('after another owner signed in in another tab, an open page decides nothing as that owner, and then shows them', async () => {
    const other = await organisation.addOwner('approver');
    const id = await hold();
    await look(page, id);
    await page.click('.decide .approve');
    await page.until(`document.querySelector('dialog #approve') !== null`);
    const tab = await page.tab();
    await signInByLink(tab, world, other);
    await tab.close();
    await page.click('dialog #approve');
    await page.until(`document.querySelector('main.alone') !== null`);
    expect(await page.value(`document.querySelector('main').innerText`)).toContain(
      `signed in as ${other.email} by now`,
    );
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    await page.click('main.alone button');
    await page.until(`document.querySelector('.account .email')?.innerText === ${JSON.stringify(other.email)}`);
    await look(page, id);
    await approve(page);
    await page.until(`document.querySelector('${card(id)}').innerText.includes('Approved')`);
    await signInByLink(page, world, organisation.owner);
    await page.open(`${world.running.baseUrl}/console`);
    await isLive(page);
  });

  test('a changed role is shown without reloading: after a refused decision, and when the page is looked at again', async () => {
    const bob = await organisation.addOwner('approver');
    const theirs = await openConsole(world, browser, bob);
    const change = (role: string) => organisation.ask('POST', '/owner/owners', { email: bob.email, role });
    const id = await hold();
    await look(theirs, id);
    expect((await change('viewer')).status).toBeLessThan(300);
    await approve(theirs);
    await says(theirs, 'This needs the role approver; yours is viewer. Ask an admin.');
    const shown = `document.querySelector('${card(id)}').innerText`;
    await theirs.until(`${shown}.includes('Your role is viewer: you may look.')`);
    expect(await theirs.value(`document.querySelector('${card(id)} .approve')`)).toBeNull();
    await change('approver');
    await theirs.value(`document.dispatchEvent(new Event('visibilitychange'))`);
    await theirs.until(`document.querySelector('${card(id)} .approve') !== null`);
    await approve(theirs);
    await theirs.until(`${shown}.includes('Approved')`);
    await theirs.close();
  });

  test('an expiry is shown without a request, and an expired call cannot be approved', async () => {
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 60 });
    const id = await hold();
    await look(page, id);
    await page.until(`document.querySelector('.left').innerText.match(/^[1-5]?\\d s left$/)`);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    world.clock.skewMs += 61_000;
    await approve(page);
    await says(page, 'Nobody decided');
    await page.until(`document.querySelector('${card(id)}').dataset.state === 'over'`);
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('expired');
    expect(world.upstream.seen).toEqual([]);
    world.clock.skewMs = 0;
  });

  test('when the session has expired the page redirects to sign-in, and back', { timeout: 270_000 }, async () => {
    await page.open(`${world.running.baseUrl}/console/agents`);
    await isLive(page);
    world.clock.skewMs += 13 * 3600 * 1000;
    // The page polls its agents every ten seconds; the broker ends the stream at a heartbeat, every fifteen.
    await page.until(`location.pathname === '/console/sign-in'`, 40_000);
    expect(await page.value(`sessionStorage.getItem('svc-place')`)).toBe('/console/agents');
    world.clock.skewMs = 0;
  });
});
