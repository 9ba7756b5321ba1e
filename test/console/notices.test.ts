/** Notices in the console: channels, devices, and the notifications of the service worker, in a real browser. */
import { beforeEach, expect, test } from 'vitest';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, openConsole, PHONE, says, write } from '../world/browser/console.ts';
import { startChannelServer } from '../world/servers/channel-server.ts';
import { givenWorld, shared } from '../world/world.ts';

const PICTURES = process.env.PICTURES !== undefined;

describeInChromium('notices in the console', () => {
  const server = shared(() => startChannelServer());
  const world = givenWorld('sqlite', () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  const organisation = shared(() => world.demoOrganisation());
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const go = (path: string, on = page) => goTo(on, world.running.baseUrl + path);
  beforeEach(() => {
    server.seen.length = 0;
  });

  test('an invalid field in a folded section is unfolded, and nothing is sent', async () => {
    await go('/console/notices');
    await page.click('#add-channel');
    await write(page, '#channel-name', 'folded');
    await write(page, '[data-field="url"]', `${server.url}/hook`);
    await page.click('dialog .rules > summary');
    await write(page, '[data-rule="remind"]', '0');
    await page.click('dialog .rules > summary');
    await page.until(`!document.querySelector('dialog .rules').open`);
    await page.click('#do-it');
    await page.until(`document.activeElement.matches('[data-rule="remind"]')`);
    expect(await page.value(`document.querySelector('dialog .rules').open`)).toBe(true);
    expect((await organisation.ask('GET', '/owner/channels')).body.channels).toEqual([]);
    expect(page.complaints).toEqual([]);
    await page.open('about:blank');
    await go('/console');
  });

  test('from an empty inbox by mouse: a webhook is added, its key shown once, tested, changed and removed', async () => {
    await page.click('#get-told, .account summary');
    if (!(await page.value(`location.pathname === '/console/notices'`))) await page.click('#to-notices');
    await page.until(`location.pathname === '/console/notices' && document.querySelector('#no-channels') !== null`);
    await page.click('#add-channel');
    await write(page, '#channel-name', 'pager');
    await write(page, '[data-field="url"]', `${server.url}/hook`);
    await page.click('#do-it');
    await page.until(`document.querySelector('dialog .command')?.innerText.startsWith('whsec_')`);
    const secret = await page.value<string>(`document.querySelector('dialog .command pre').innerText`);
    await page.click('#kept');
    await page.until(`document.querySelector('[data-channel="pager"] .state')?.innerText === 'New'`);
    await page.click('[data-channel="pager"] .test');
    await says(page, 'accepted the test notice');
    await page.until(`document.querySelector('[data-channel="pager"] .state').innerText === 'Working'`);
    expect((await server.waitFor(1))[0]!.type).toBe('test');
    await page.click('[data-channel="pager"] .change');
    await page.click('dialog .rules > summary');
    await page.click('dialog [data-event="agent_suspended"]');
    await page.value(`document.querySelector('[data-rule="agents"]').focus()`);
    await page.type('deploy-*');
    await page.click('#do-it');
    await says(page, 'is changed');
    const { channels } = (await organisation.ask('GET', '/owner/channels')).body;
    expect(channels[0].rules).toEqual({
      events: ['call_held', 'access_requested', 'registration_waiting', 'connection_broken', 'passkey_added'],
      agents: ['deploy-*'],
    });
    expect(await page.value(`document.documentElement.innerHTML`)).not.toContain(secret);
    if (PICTURES)
      for (const [name, size] of Object.entries({ desk: DESKTOP, phone: PHONE }))
        for (const scheme of ['light', 'dark'] as const) {
          await page.resize(size);
          await page.prefer(scheme);
          await page.screenshot(`notices-${name}-${scheme}.png`);
          await page.click('#add-channel');
          await page.click('dialog .rules > summary');
          await page.screenshot(`notices-add-${name}-${scheme}.png`);
          await page.press('Escape');
        }
    await page.resize(DESKTOP);
    await page.prefer('light');
    await page.click('[data-channel="pager"] .remove');
    await page.click('#do-it');
    await page.until(`document.querySelector('#no-channels') !== null`);
  });

  test('every channel kind has a form generated from its description, which shows a refusal', async () => {
    await go('/console/notices');
    await page.click('#add-channel');
    const { kinds } = (await organisation.ask('GET', '/owner/channel-kinds')).body;
    for (const { kind, settings } of kinds) {
      await page.value(
        `(() => { const s = document.querySelector('#channel-kind'); s.value = ${JSON.stringify(kind)}; s.dispatchEvent(new Event('change', { bubbles: true })); })()`,
      );
      await page.until(
        `${JSON.stringify(Object.keys(settings.properties ?? {}))}.every((one) => document.querySelector('dialog [data-field="' + one + '"]'))`,
      );
    }
    expect(kinds.length).toBeGreaterThan(2);
    await page.value(
      `(() => { const s = document.querySelector('#channel-kind'); s.value = 'ntfy'; s.dispatchEvent(new Event('change', { bubbles: true })); })()`,
    );
    await write(page, '#channel-name', 'phone');
    await write(page, '[data-field="topic"]', 'not a topic');
    await page.click('#do-it');
    await page.until(`document.querySelector('dialog [role="alert"]')?.innerText.includes('topic')`);
    await page.press('Escape');
  });

  test('by keyboard alone: from the settings a mailbox is added, and removed', async () => {
    /** Presses Tab until the element of this selector has the focus. */
    const tabTo = async (selector: string) => {
      for (let step = 0; step < 80; step++) {
        await page.press('Tab');
        if (await page.value(`document.activeElement?.matches(${JSON.stringify(selector)}) ?? false`)) return;
      }
      throw new Error(`Tab does not lead to ${selector}.`);
    };
    await go('/console/settings');
    await tabTo('#to-notices-page');
    await page.press('Enter');
    await page.until(`location.pathname === '/console/notices' && document.querySelector('#add-channel') !== null`);
    await tabTo('#add-channel');
    await page.press('Enter');
    await tabTo('#channel-kind');
    // Typing letters selects an option of a list.
    await page.press('e');
    await page.until(`document.querySelector('dialog [data-field="host"]') !== null`);
    for (const [selector, text] of [
      ['#channel-name', 'mail'],
      ['[data-field="host"]', 'smtp.acme.example'],
      ['[data-field="from"]', 'broker@acme.example'],
      ['[data-field="to"]', 'ann@acme.example, bob@acme.example'],
    ] as const) {
      await tabTo(selector);
      await page.type(text);
    }
    await tabTo('#do-it');
    await page.press('Enter');
    await says(page, 'The channel “mail” is there');
    const { channels } = (await organisation.ask('GET', '/owner/channels')).body;
    expect(channels[0].settings).toMatchObject({ to: ['ann@acme.example', 'bob@acme.example'] });
    await tabTo('[data-channel="mail"] .remove');
    await page.press('Enter');
    await tabTo('#do-it');
    await page.press('Enter');
    await page.until(`document.querySelector('#no-channels') !== null`);
  });

  test('a person without the admin role sees only devices', async () => {
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'), PHONE);
    await go('/console/notices', viewer);
    await viewer.until(`document.querySelector('#not-admin')?.innerText.includes('viewer')`);
    expect(await viewer.value(`document.querySelector('#add-channel')`)).toBeNull();
    expect(viewer.complaints).toEqual([]);
  });

  test('the page and the dialog are accessible, on phones, in light and dark', async () => {
    await go('/console/notices');
    await page.until(`document.querySelector('#no-channels') !== null && document.querySelector('#reach') !== null`);
    await expectAccessible(page, 'notices');
    await page.click('#add-channel');
    await page.click('dialog .rules > summary');
    await expectAccessible(page, 'adding a channel');
    await page.press('Escape');
    await page.resize(DESKTOP);
  });
});
