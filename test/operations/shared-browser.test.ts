/** The browser shared by test files: pages have nothing of earlier pages, even after a crash. */
import { describe, expect, test } from 'vitest';
import { startBrowser, withoutChromium } from '../world/chromium.ts';
import { startUpstream } from '../world/upstream.ts';

const SIZE = { width: 800, height: 600 };

describe.skipIf(withoutChromium)(`the shared browser${withoutChromium ? ` (skipped: ${withoutChromium})` : ''}`, () => {
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
