/** The browser of the tests: a page opens what a test asks for, and stays as long as its tests. */
import { describe, expect, test } from 'vitest';
import { describeInChromium, openPage } from '../world/browser/chromium.ts';
import { repeatSetup } from '../world/runner/repeat-setup.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { shared } from '../world/world.ts';

const SIZE = { width: 800, height: 600 };

describeInChromium('pages of tests', () => {
  test('a page that navigates after a click still opens the address of the test', async () => {
    const upstream = await startUpstream();
    let proceed: (() => void) | undefined;
    upstream.answer = ({ url }, response) => {
      const answer = () => response.writeHead(200, { 'content-type': 'text/html' }).end(`<button>${url}</button>`);
      // The page begins its own navigation while that of the test is under way. Chromium lets it replace the other for some seconds after the click.
      if (url === '/proceed') proceed = answer;
      else if (url === '/wanted' && proceed) {
        proceed();
        proceed = undefined;
        setTimeout(answer, 5_000).unref();
      } else answer();
    };
    const page = await openPage(SIZE);
    await page.open(`${upstream.url}/first`);
    await page.until(`location.pathname === '/first'`);
    await page.value(`addEventListener('click', () => fetch('/proceed').then(() => location.assign('/own')))`);
    await page.click('button');
    await expect.poll(() => proceed).toBeDefined();
    await page.open(`${upstream.url}/wanted`);
    await page.until(`location.pathname === '/wanted'`);
  });

  describe('a page that tests share', () => {
    const page = shared(() => openPage(SIZE));

    test('is replaced by another one when the setup is repeated', async ({ task }) => {
      await page.value(`document.title = 'earlier attempt'`);
      await repeatSetup(task);
      expect(await page.value('document.title')).toBe('');
    });

    test('stays open after the test whose last attempt began with it', async () => {
      expect(await page.value('1 + 1')).toBe(2);
    });
  });
});
