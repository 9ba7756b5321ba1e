/** Data that the console cannot render, in a real browser: the rest of the page still works, and so does the button that stops agents. */
import { expect, test } from 'vitest';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { approve, card, isLive, look, openConsole, says } from '../world/browser/console.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

/** Replaces an API response with data that the console's code does not expect. */
const breaking = (path: string, broken: string) => `{
  const original = window.fetch;
  window.fetch = async (asked, options) => {
    const answer = await original(asked, options);
    if (!String(asked).startsWith(${JSON.stringify(path)})) return answer;
    const body = await answer.json();
    (${broken})(body);
    return Response.json(body, { status: answer.status });
  };
}`;
const CANNOT = 'cannot be shown, because of an error in the console: ';

describeInChromium('data that cannot be rendered', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = fresh(() => openConsole(world, browser, organisation.owner));

  const hold = async (note: string): Promise<string> =>
    await agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { note } });
  const reopen = async (on: Page, path: string, broken: { of: string; by: string }) => {
    await on.command('Page.addScriptToEvaluateOnNewDocument', { source: breaking(broken.of, broken.by) });
    await on.open(world.running.baseUrl + path);
  };

  test('a pending call that cannot be rendered does not hide the others, and agents can be stopped', async () => {
    const good = await hold('good');
    const bad = await hold('bad');
    await reopen(page, '/console', {
      of: '/owner/approvals?',
      by: `({ approvals }) => { for (const one of approvals) if (one.approval_id === ${JSON.stringify(bad)}) one.sentence.parts = null; }`,
    });
    await isLive(page);
    await page.until(`document.querySelector('#held > .notice')?.innerText.includes(${JSON.stringify(CANNOT)})`);
    expect(await page.value(`document.querySelector('${card(bad)}')`)).toBeNull();
    await look(page, good);
    await approve(page);
    await says(page, 'and made');
    await page.click('#stop');
    await page.until(`document.querySelector('dialog[open]') !== null`);
    expect(page.complaints).toEqual([]);
  });

  test('a request that cannot be rendered shows an error in its card, and cannot be approved', async () => {
    const id = await hold('bad');
    const by = '(answer) => { if (answer.request) answer.agent = null; }';
    await reopen(page, '/console', { of: `/owner/approvals/${id}`, by });
    await isLive(page);
    await page.click(`${card(id)} .opener`);
    await page.until(`document.querySelector('${card(id)} .notice')?.innerText.includes(${JSON.stringify(CANNOT)})`);
    expect(await page.value(`document.querySelector('.decide .approve:enabled')`)).toBeNull();
    await reopen(page, `/approve/${id}`, { of: `/approve/${id}/request`, by });
    await page.until(`document.querySelector('main .notice')?.innerText.includes('This request ${CANNOT}')`);
  });

  test('a page that cannot be rendered keeps the navigation to the other pages', async () => {
    await reopen(page, '/console', { of: '/owner/agents', by: '(answer) => { answer.agents = [null]; }' });
    await isLive(page);
    await page.click('nav a[href="/console/agents"]');
    await page.until(`document.querySelector('main > .notice')?.innerText.includes('This page ${CANNOT}')`);
    await page.click('nav a[href="/console/team"]');
    await page.until(`document.querySelector('main h1')?.innerText === 'Team'`);
    expect(await page.value(`document.querySelector('main > .notice')`)).toBeNull();
  });
});
