/** Slow and failing answers of the broker, in a real browser: the console says what happened, and loses nothing that was entered. */
import { expect, test } from 'vitest';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { card, goTo, has, look, openConsole, said, says, write } from '../world/browser/console.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

const UNAVAILABLE = { error: 'audit_unavailable', detail: 'The audit cannot be written now. Try again in a moment.' };

/** Delays the answers to requests of this method and path by `ms`, and answers `status` with `body` if they are given. */
const answerWith = (
  page: Page,
  method: string,
  path: string,
  { ms = 0, status, body }: { ms?: number; status?: number; body?: object },
) =>
  page.value(`(() => {
    window.whole ??= window.fetch;
    window.fetch = async (asked, options) => {
      if ((options?.method ?? 'GET') !== ${JSON.stringify(method)} || !String(asked).startsWith(${JSON.stringify(path)})) return window.whole(asked, options);
      await new Promise((over) => setTimeout(over, ${ms}));
      return ${status === undefined ? 'window.whole(asked, options)' : `Response.json(${JSON.stringify(body)}, { status: ${status} })`};
    };
  })()`);
const answerAgain = (page: Page) => page.value('{ window.fetch = window.whole; }');

describeInChromium('slow and failing answers', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = fresh(() => openConsole(world, browser, organisation.owner));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const hold = () => agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' });



  test('a sign-out that the broker refuses stays on the page, and says that the session has not ended', async () => {
    await answerWith(page, 'POST', '/owner/sign-out', { status: 503, body: UNAVAILABLE });
    await page.click('.account summary');
    await page.click('#sign-out');
    await says(page, 'You may still be signed in');
    expect(await said(page)).toContain(UNAVAILABLE.detail);
    expect(await page.value('location.pathname')).toBe('/console');
    await answerAgain(page);
    await page.click('#sign-out');
    await page.until(`location.pathname === '/console/sign-in'`);
  });

  test('a page whose answers take longer than its interval is shown', async () => {
    await answerWith(page, 'GET', '/owner/invites', { ms: 4_000 });
    const invite = await organisation.ask('POST', '/owner/invites', { agent_name: 'late', grants: [] });
    expect(invite.status, JSON.stringify(invite.body)).toBe(200);
    await go('/console/agents/new');
    await has(page, 'main', 'Open invites');
  });
});
