/** The documentation in a real browser, within the strict policy: at a desk and on a phone, light and dark. */
import { describe, expect, test } from 'vitest';
import { expectAccessible, overflowing } from '../world/accessible.ts';
import { send } from '../world/agent.ts';
import { startBrowser, withoutChromium } from '../world/chromium.ts';
import { givenWorld, shared } from '../world/given.ts';

const world = givenWorld();
const get = (path: string) => send(world.running.baseUrl + path, {});

describe.skipIf(withoutChromium)(`in a browser${withoutChromium ? ` (skipped: ${withoutChromium})` : ''}`, () => {
  const page = shared(async () => await (await startBrowser()).page({ width: 1280, height: 900 }));
  const SIZES = [
    ['desk', { width: 1280, height: 900 }, 'window'],
    ['phone', { width: 360, height: 740 }, 'phone'],
  ] as const;

  /** Opens the reference that is drawn from a document, and holds it to having all operations, and to nothing from elsewhere. */
  const expectWhole = async (document: string, path: string) => {
    await page.open('about:blank');
    await page.open(world.running.baseUrl + path);
    const operations = Object.values<object>((await get(document)).body.paths).flatMap(Object.keys);
    // Drawing 147 takes 5 s of a processor, which other tests share.
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

  // Drawing it takes the most of it, so each is loaded once.
  test(
    'the reference for owners is drawn whole, from this broker alone, and the policy refuses nothing',
    {
      timeout: 90_000,
    },
    () => expectWhole('/owner/openapi.json', '/docs/owner-reference'),
  );

  test('a link to an operation opens it, in a reference for agents that is as whole, and never wider than the window', {
    timeout: 90_000,
  }, async () => {
    await expectWhole('/v1/openapi.json', '/docs/reference#/Governed%20calls/actionsExecute');
    await page.until(
      `document.querySelector('.opblock.is-open .opblock-summary-path')?.textContent.includes('actions')`,
    );
    await page.until(`document.querySelector('.opblock.is-open .opblock-body')?.innerText.includes('202') === true`);
    await expectNothingWider('/docs/reference');
  });

  test('words are searched for by keyboard, on any page', async () => {
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
