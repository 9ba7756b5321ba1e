/** The documentation in a real browser, within the strict policy: at a desk and on a phone, light and dark. */
import { describe, expect, test } from 'vitest';
import { expectAccessible } from '../world/accessible.ts';
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

  test.each(['/v1/openapi.json', '/owner/openapi.json'])(
    'the reference of %s is drawn whole, from this broker alone, and the policy refuses nothing',
    { timeout: 90_000 },
    async (document) => {
      await page.open(
        `${world.running.baseUrl}${document.startsWith('/v1') ? '/docs/reference' : '/docs/owner-reference'}`,
      );
      const operations = Object.values<object>((await get(document)).body.paths).flatMap(Object.keys);
      // Drawing 147 takes 5 s of a processor, which other tests share.
      await page.until(`document.querySelectorAll('.opblock').length === ${operations.length}`, 60_000);
      const loaded = await page.value<string[]>(`performance.getEntriesByType('resource').map(({ name }) => name)`);
      const foreign = loaded.filter((url) => !url.startsWith(world.running.baseUrl) && !url.startsWith('data:'));
      expect([foreign, page.complaints]).toEqual([[], []]);
    },
  );

  test('a link to an operation opens it', async () => {
    await page.open('about:blank');
    await page.open(`${world.running.baseUrl}/docs/reference#/Governed%20calls/actionsExecute`);
    await page.until(
      `document.querySelector('.opblock.is-open .opblock-summary-path')?.textContent.includes('actions')`,
    );
    expect(page.complaints).toEqual([]);
    for (const [name, size, as] of SIZES) {
      await page.resize(size, as);
      await page.until(`document.querySelector('.opblock.is-open .opblock-body')?.innerText.includes('202') === true`);
      expect(await page.value<number>('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
      if (process.env.PICTURES) await page.screenshot(`docs-operation-${name}.png`);
    }
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

  test.each(SIZES)(
    'nothing is wider than the window on a %s, light and dark',
    async (name, size, as) => {
      await page.resize(size, as);
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        for (const path of ['/docs', '/docs/agents', '/docs/search?q=approval', '/docs/reference']) {
          await page.open(world.running.baseUrl + path);
          await page.until(`document.readyState === 'complete' && document.querySelector('main') !== null`);
          if (path === '/docs/reference') await page.until(`document.querySelectorAll('.opblock').length > 20`);
          const over = await page.value<number>('document.documentElement.scrollWidth - innerWidth');
          expect(over, `${path} ${scheme}`).toBeLessThanOrEqual(0);
          if (process.env.PICTURES) await page.screenshot(`docs${path.replaceAll('/', '-')}-${name}-${scheme}.png`);
        }
      }
      expect(page.complaints).toEqual([]);
      // The reference is large, and machines of CI are slow.
    },
    60_000,
  );
});
