/** The browser of the tests: a page opens what a test asks for. */
import { expect, test } from 'vitest';
import { describeInChromium, openPage } from '../world/chromium.ts';
import { startUpstream } from '../world/upstream.ts';

describeInChromium('pages of tests', () => {
  test('a page that navigates after a click still opens the address of the test', async () => {
    const upstream = await startUpstream();
    const paths = () => upstream.seen.map(({ target }) => target);
    upstream.answer = ({ url }, response) => {
      // The page's own navigation begins while that of the test is under way.
      if (url === '/wanted' && !paths().includes('/own')) return;
      response.writeHead(200, { 'content-type': 'text/html' }).end(`<button>${url}</button>`);
    };
    const page = await openPage({ width: 800, height: 600 });
    await page.open(`${upstream.url}/first`);
    await page.until(`location.pathname === '/first'`);
    await page.value(`addEventListener('click', () => setTimeout(() => location.assign('/own'), 200))`);
    await page.click('button');
    await page.open(`${upstream.url}/wanted`);
    await page.until(`location.pathname === '/wanted'`);
    expect(paths()).toContain('/own');
  });
});
