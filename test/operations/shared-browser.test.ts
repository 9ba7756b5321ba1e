/** The browser that test files share: who opens pages later has nothing of those before, also when it has crashed meanwhile. */
import { describe, expect, test } from 'vitest';
import { startBrowser, withoutChromium } from '../world/chromium.ts';
import { startUpstream } from '../world/upstream.ts';

const SIZE = { width: 800, height: 600 };

describe.skipIf(withoutChromium)(`the shared browser${withoutChromium ? ` (skipped: ${withoutChromium})` : ''}`, () => {
  test('a page has no cookie of another, and a browser that crashed is there again for the next', async () => {
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
    // It answers nothing any more.
    void second.command('Browser.crash');
    await second.closed;
    const third = await open();
    expect(await third.value('document.cookie')).toBe('');
    await site.close();
  });
});
