/** The frame of the pages: width, navigation, not-found pages, and the content before any script has run. */
import { beforeAll, describe, expect, test } from 'vitest';
import { send } from '../world/agent.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, openConsole } from '../world/browser/console.ts';
import { givenWorld, shared } from '../world/world.ts';

const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

describe('addresses and files of the console', () => {
  const world = givenWorld();
  const at = (path: string) => world.running.baseUrl + path;

  test.each([
    ['/console/nope', '/console'],
    ['/console/agents/agt_1', '/console'],
    ['/approve/', '/console'],
    ['/docs/nope', '/docs'],
  ])('%s is a 404 page with a link back for a browser, and the error envelope for a program', async (path, back) => {
    const page = await fetch(at(path), { headers: HTML });
    expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    const text = await page.text();
    expect(text).toContain('There is no such page');
    expect(text).toContain(`href="${back}"`);
    const program = await send(at(path), { headers: { accept: '*/*' } });
    expect([program.status, program.body.error]).toEqual([404, 'not_found']);
  });

  test('a link with an invalid percent-encoding is a not-found page, too', async () => {
    const page = await fetch(at('/approve/%zz'), { headers: HTML });
    expect([page.status, await page.text()]).toEqual([404, expect.stringContaining('There is no such page')]);
    expect(await send(at('/owner/agents/%zz'), { headers: HTML })).toMatchObject({
      status: 401,
      body: { error: 'missing_token' },
    });
  });

  test('an unknown route of the API answers the JSON error envelope, also to a browser', async () => {
    for (const path of ['/v1/nope', '/owner/nope', '/consoles'])
      expect((await send(at(path), { headers: HTML })).body.error).toBe('not_found');
  });

  test('files are sent compressed to clients that accept it', async () => {
    const length = async (encoding: string) => {
      const response = await fetch(at('/console/base.css'), { headers: { 'accept-encoding': encoding } });
      expect(response.headers.get('content-encoding')).toBe(encoding === 'gzip' ? 'gzip' : null);
      return [Number(response.headers.get('content-length')), (await response.text()).length] as const;
    };
    const [sent, size] = await length('gzip');
    expect(await length('identity')).toEqual([size, size]);
    expect(sent).toBeLessThan(size / 2);
  });

  test('a page shows that it is loading before any script has run', async () => {
    expect(await (await fetch(at('/console'))).text()).toContain('Loading the console…');
  });
});

describeInChromium('frame of pages', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  beforeAll(() => organisation.agent({ name: 'triage' }));

  test('the content of every page has the same left and right edges', async () => {
    const edges: Record<string, unknown> = {};
    for (const path of ['agents', 'connections', 'people', 'passkeys', 'settings', 'reports', 'clients']) {
      await go(`/console/${path}`);
      await page.until(`document.querySelector('main .sheet') !== null`);
      edges[path] = await page.value(
        `(({ left, right }) => [left, right])(document.querySelector('main .sheet').getBoundingClientRect())`,
      );
    }
    const [first] = Object.values(edges);
    for (const [path, edge] of Object.entries(edges)) expect([path, edge]).toEqual([path, first]);
  });

  test('there is a gap between a sheet and the content above it', async () => {
    await go('/console/reports');
    await page.until(`document.querySelector('main .sheet') !== null`);
    const gap = await page.value<number>(
      `document.querySelector('main .sheet').getBoundingClientRect().top - document.querySelector('main .quiet').getBoundingClientRect().bottom`,
    );
    expect(gap).toBeGreaterThanOrEqual(12);
  });

  test.each([
    ['/console/reports', '/console/agents', 'true'],
    ['/console/clients', '/console/agents', 'true'],
    ['/console/people', '/console/connections', 'true'],
    ['/console/connections/new', '/console/connections', 'true'],
    ['/console/passkeys', '/console/team', 'true'],
    ['/console/settings', '/console/settings', 'page'],
  ])('on %s the navigation marks %s', async (path, marked, how) => {
    await go(path);
    const found = `[...document.querySelectorAll('nav [aria-current]')].map((one) => [one.getAttribute('href'), one.getAttribute('aria-current')])`;
    expect(await page.value(found)).toEqual([[marked, how]]);
  });

  test('the account menu links to the passkeys', async () => {
    await go('/console');
    await page.click('.account summary');
    await page.click('#to-passkeys');
    await page.until(`location.pathname === '/console/passkeys' && document.title.startsWith('Passkeys')`);
  });

  test('a command is copied by its button', async () => {
    const fresh = await openConsole(world, browser, (await world.organisation()).owner);
    await fresh.until(`document.querySelector('.command button') !== null`);
    await fresh.value(`Object.defineProperty(navigator, 'clipboard', {
      value: { writeText: async (text) => { window.copied = text; } }, configurable: true,
    })`);
    await fresh.click('.command button');
    await fresh.until(`document.querySelector('.command button').innerText === 'Copied'`);
    expect(await fresh.value('window.copied')).toBe('npx agent-broker agent create my-agent');
  });
});
