/** The documentation in a real browser, under the strict Content-Security-Policy: on a desktop and on a phone, light and dark. */
import { expect, test } from 'vitest';
import { send } from '../world/agent.ts';
import { expectAccessible, overflowing } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { thorough } from '../world/runner/thorough.ts';
import { givenWorld, shared } from '../world/world.ts';

const world = givenWorld();
const get = (path: string) => send(world.running.baseUrl + path, {});

describeInChromium('docs pages', () => {
  const page = shared(async () => await (await startBrowser()).page({ width: 1280, height: 900 }));
  const SIZES = [
    ['desk', { width: 1280, height: 900 }, 'window'],
    ['phone', { width: 360, height: 740 }, 'phone'],
  ] as const;

  /** Opens the reference of an OpenAPI document, and expects all operations in it and no resource from another host. */
  const expectWhole = async (document: string, path: string) => {
    await page.open('about:blank');
    await page.open(world.running.baseUrl + path);
    const operations = Object.values<object>((await get(document)).body.paths).flatMap(Object.keys);
    // Rendering 147 operations takes 5 s of CPU time, which other tests share.
    await page.until(`document.querySelectorAll('.opblock').length === ${operations.length}`, 60_000);
    const loaded = await page.value<string[]>(`performance.getEntriesByType('resource').map(({ name }) => name)`);
    const foreign = loaded.filter((url) => !url.startsWith(world.running.baseUrl) && !url.startsWith('data:'));
    expect([foreign, page.complaints]).toEqual([[], []]);
  };
  const expectNothingWider = async (path: string) => {
    for (const [name, size, as] of SIZES) {
      await page.resize(size, as);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        expect(await overflowing(page), `${path}: ${name}, ${scheme}`).toEqual([]);
        if (process.env.PICTURES)
          await page.screenshot(`docs${path.replaceAll(/[^a-z]+/gi, '-')}-${name}-${scheme}.png`);
      }
    }
    expect(page.complaints).toEqual([]);
  };

  // Rendering takes most of the time, so each reference is loaded once, and the larger one in thorough runs only: the reference for agents below is checked in
  // the same way.
  test.runIf(thorough)(
    'the reference for owners is rendered completely, from this broker only, without a policy violation',
    {
      timeout: scaledTimeout(90_000),
    },
    () => expectWhole('/owner/openapi.json', '/docs/owner-reference'),
  );

  test('a link to an operation opens it in the reference for agents, which is complete and not wider than the window', {
    timeout: scaledTimeout(90_000),
  }, async () => {
    await expectWhole('/v1/openapi.json', '/docs/reference#/Governed%20calls/actionsExecute');
    await page.until(
      `document.querySelector('.opblock.is-open .opblock-summary-path')?.textContent.includes('actions')`,
    );
    await page.until(`document.querySelector('.opblock.is-open .opblock-body')?.innerText.includes('202') === true`);
    await expectNothingWider('/docs/reference');
  });

  test('the search works by keyboard on every page', async () => {
    await page.resize({ width: 1280, height: 900 }, 'window');
    await page.open(`${world.running.baseUrl}/docs/agents`);
    await page.until(
      `document.querySelector('input[name="q"]')?.focus() === undefined && document.activeElement.name === 'q'`,
    );
    await page.type('standing approval');
    await page.press('Enter');
    await page.until(`location.pathname === '/docs/search' && document.querySelector('.found mark') !== null`);
    expect(await page.value(`document.querySelector('input[name="q"]').value`)).toBe('standing approval');
    await expectAccessible(page, 'docs-search');
    expect(page.complaints).toEqual([]);
  });

  test.each(['/docs', '/docs/agents', '/docs/search?q=approval'])(
    'nothing of %s is wider than the window, at a desk and on a phone, light and dark',
    async (path) => {
      await page.open('about:blank');
      await page.open(world.running.baseUrl + path);
      await page.until(`document.readyState === 'complete' && document.querySelector('main') !== null`);
      await expectNothingWider(path);
    },
  );
});
