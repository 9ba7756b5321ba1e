/** The browser shared by test files: pages have nothing of earlier pages, even after a crash. */
import { expect, test } from 'vitest';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { startUpstream } from '../world/servers/upstream.ts';

const SIZE = { width: 800, height: 600 };

describeInChromium('the shared browser', () => {
  test('a page that is used again has nothing of its first use', async () => {
    const site = await startUpstream();
    site.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p id="there">');
    const browser = await startBrowser();
    const open = async () => {
      const page = await browser.page(SIZE);
      await page.open(site.url);
      await page.until(`document.querySelector('#there') !== null`);
      return page;
    };
    const state = `(async () => ({
      cookie: document.cookie,
      stored: [localStorage.length, sessionStorage.length, (await indexedDB.databases()).length, (await caches.keys()).length],
      before: history.length,
      window: [innerWidth, devicePixelRatio, navigator.maxTouchPoints, matchMedia('(prefers-color-scheme: dark)').matches],
      mayRead: (await navigator.permissions.query({ name: 'clipboard-read' })).state,
      leaving: onbeforeunload,
    }))()`;
    const targetOf = async (page: Page) => (await page.command('Target.getTargetInfo')).targetInfo.targetId;
    const first = await open();
    const fresh = await first.value<object>(state);
    await first.value(`(async () => {
      document.cookie = 'seen=1';
      localStorage.setItem('seen', 1);
      sessionStorage.setItem('seen', 1);
      await caches.open('seen');
      await new Promise((made) => { indexedDB.open('seen').onsuccess = made; });
      history.pushState(null, '', '?seen');
      onbeforeunload = (event) => event.preventDefault();
    })()`);
    await first.resize({ width: 300, height: 300 }, 'phone');
    await first.prefer('dark');
    await first.allow('clipboardReadWrite');
    expect(await first.value(state)).not.toMatchObject(fresh);
    const target = await targetOf(first);
    await first.offline(true);
    await first.close();
    const second = await open();
    expect(await targetOf(second)).toBe(target);
    expect(await second.value(state)).toEqual(fresh);
    await site.close();
  });

  test('a page has no cookies of another, and a crashed browser is restarted for the next page', async () => {
    const site = await startUpstream();
    site.answer = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p id="there">');
    const open = async () => {
      const page = await (await startBrowser()).page(SIZE);
      await page.open(site.url);
      await page.until(`document.querySelector('#there') !== null`);
      return page;
    };
    const first = await open();
    await first.value(`document.cookie = 'seen=1'`);
    const second = await open();
    expect([await first.value('document.cookie'), await second.value('document.cookie')]).toEqual(['seen=1', '']);
    // The command is never answered.
    void second.command('Browser.crash');
    await second.closed;
    const third = await open();
    expect(await third.value('document.cookie')).toBe('');
    await site.close();
  });
});
