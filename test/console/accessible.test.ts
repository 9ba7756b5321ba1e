/** Accessibility of the console's pages: axe, phones of 360 and 320 pixels, light and dark colours. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readPages } from '../../broker/console/pages.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, openConsole, PHONE } from '../world/browser/console.ts';
import { picture } from '../world/browser/pictures.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

/** A rule of each effect. */
const CAREFUL = [
  { name: 'reads', effect: 'allow', methods: ['GET'] },
  { name: 'changes', effect: 'require_approval', methods: ['POST'] },
  { name: 'never', effect: 'deny', methods: ['DELETE'] },
];
/** The longest name that a registering agent may have, without a hyphen, where a line could break. */
const LONG = `support_triage_${'of_a_long_name_without_any_space_'.repeat(3)}`.slice(0, 100);

describeInChromium(
  'accessible pages of the console',
  () => {
    const world = givenWorld();
    const organisation = shared(() => world.demoOrganisation());
    const agent = shared(() => organisation.agent({ name: LONG }));
    const browser = shared(() => startBrowser());
    const page = shared(() => openConsole(world, browser, organisation.owner, PHONE));

    const go = async (path: string, ready: string) => {
      await goTo(page, world.running.baseUrl + path);
      await page.until(ready);
    };
    /** Navigates without loading the console again, as its links do: the first axe run in each document is slow. */
    const follow = async (path: string, ready: string) => {
      const before = await page.value<string>('document.title');
      await page.value(`(() => {
        history.pushState(null, '', ${JSON.stringify(path)});
        dispatchEvent(new PopStateEvent('popstate'));
      })()`);
      await page.until(`document.title !== ${JSON.stringify(before)} && !document.querySelector('.loading')`);
      await page.until(ready);
    };
    const hold = async (by: TestAgent, count: number) => {
      for (let at = 0; at < count; at++) {
        const held = await by.act({ ...WRITE, data: { title: `call ${at}` }, reason: 'Because. '.repeat(20) });
        expect(held.status, held.text).toBe(202);
      }
    };
    const has = (selector: string) => `document.querySelector('${selector}') !== null`;

    test('the inbox is accessible: empty, with one call, with sixteen, with an open card, a selection, an open group, and its dialogs', async () => {
      await go('/console', has('.empty'));
      await expectAccessible(page, 'the empty inbox');
      await hold(agent, 1);
      await go('/console', has('.card'));
      await expectAccessible(page, 'the inbox with one');
      await page.click('.opener');
      await page.until(has('.decide'));
      await expectAccessible(page, 'an open card');
      await hold(agent, 10);
      const other = await organisation.agent({ name: 'reader', grants: { demo: { scopeList: ['demo:write'] } } });
      await hold(other, 4);
      const { status, text } = await other.post('/v1/access-request', {
        platform: 'demo',
        scope: 'demo:read',
        reason: 'To clean up.',
      });
      expect(status, text).toBe(202);
      await go('/console', has('.group'));
      await expectAccessible(page, 'the inbox of sixteen');
      await page.click('.group .pick input');
      await page.click('.group .opener');
      await page.until(has('.group .card'));
      await expectAccessible(page, 'an open group that is selected');
      await page.click('#approve-selected');
      await page.until(has('dialog .several'));
      await expectAccessible(page, 'the question about several', 'dialog');
      await page.click('dialog .several summary');
      await page.until(has('dialog .request-view'));
      await expectAccessible(page, 'one of several with its request', 'dialog');
      // The card is longer than the window, and its buttons are in view.
      await page.until(`document.querySelector('dialog').scrollHeight > innerHeight`);
      expect(
        await page.value(`document.querySelector('dialog #approve').getBoundingClientRect().bottom <= innerHeight`),
      ).toBe(true);
      // Nor do the buttons cover the last words where the whole card fits.
      await page.resize({ width: 1280, height: 1200 });
      await page.until(`document.querySelector('dialog').scrollHeight <= innerHeight`);
      expect(
        await page.value(
          `document.querySelector('dialog form > .buttons').getBoundingClientRect().top >= document.querySelector('dialog form > p:last-of-type').getBoundingClientRect().bottom`,
        ),
      ).toBe(true);
      await page.press('Escape');
      await page.click('#deny-selected');
      await page.until(has('dialog .several'));
      await expectAccessible(page, 'the question whether to deny several', 'dialog');
      await page.press('Escape');
      await page.click('[data-entry^="access-"] .opener');
      await page.until(has('.access'));
      await expectAccessible(page, 'an open access request');
    });

    test('every dialog about an agent fits when the name of the agent cannot break', async () => {
      await go(`/console/agents/${agent.agentId}`, has('#add-grant'));
      // The dialogs that stop the agent, and those next to the settings that they change.
      const questions = await page.value<string[]>(
        `[...document.querySelectorAll('main [data-verb], main button[id]')].map((one) => one.id ? '#' + one.id : '[data-verb="' + one.dataset.verb + '"]')`,
      );
      expect(questions).toEqual(
        expect.arrayContaining(['[data-verb="suspend"]', '[data-verb="revoke"]', '#add-grant']),
      );
      expect(questions).toEqual(expect.arrayContaining(['#change-policy', '#change-labels', '#new-key']));
      for (const question of new Set(questions)) {
        await page.click(`main ${question}`);
        await page.until(has('dialog'));
        await expectAccessible(page, question, 'dialog');
        await page.press('Escape');
        await page.until(`!${has('dialog')}`);
      }
      await page.click('[data-verb="suspend"]');
      await page.screenshot('long-name-suspend.png');
      await page.press('Escape');
    });

    test('the invitation of an agent with a name that cannot break fits', async () => {
      await go('/console/agents/new', has('#agent-name'));
      await page.click('#agent-name');
      await page.type(LONG.slice(0, 64).replaceAll('_', 'x'));
      await page.click('#invite');
      await page.until(has('#invited .command'));
      await expectAccessible(page, 'an invited agent');
      await page.screenshot('long-name-invited.png');
    });

    test('the open tab is within the window', async () => {
      await hold(agent, 1);
      for (const path of ['/console/connections', '/console/settings']) {
        for (const width of [360, 320]) {
          await page.resize({ width, height: 700 }, 'phone');
          await page.until(`innerWidth === ${width}`);
          // The count of pending calls is loaded after the tabs, and makes them wider.
          await go(path, has('nav .count'));
          await page.value('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
          const { left, right } = await page.value<{ left: number; right: number }>(
            `document.querySelector('nav [aria-current]').getBoundingClientRect().toJSON()`,
          );
          expect(left).toBeGreaterThanOrEqual(0);
          expect(right).toBeLessThanOrEqual(width);
          expect(await page.value(`document.querySelector('.bar nav').dataset.beyond`)).toMatch(/start|both/);
        }
      }
      await go('/console', has('nav [aria-current]'));
      expect(await page.value(`document.querySelector('.bar nav').dataset.beyond`)).toBe('end');
    });

    /** For each page: an element that shows that the page has loaded. */
    const READY: Record<string, string> = {
      '/console/agents': '#agents .row',
      '/console/agents/{id}': '#grants .row',
      '/console/agents/new': '#add-platform',
      '/console/activity': '#activity .row',
      '/console/overview': '#calls',
      '/console/connections': '#connections .row',
      '/console/connections/new': '#own-rest',
      '/console/policies': '#policies .row',
      '/console/policies/{name}': 'h1',
      '/console/people': '.people .sheet',
      '/console/team': '[data-member]',
      '/console/settings': '#publish',
      '/console/notices': '#add-channel',
      '/console/audit-sinks': '#add-sink',
      '/console/governance': '#governance-text',
      '/console/reports': '.page-head',
      '/console/clients': '.page-head',
      '/console/passkeys': '.enrol',
      '/console/receipt': '#receipt-text',
      '/console/restored': '.empty',
      '/console/standing-approvals': '.page-head',
    };
    /** Standalone pages are checked in the tests that use them. */
    const ELSEWHERE: Record<string, string> = {
      '/console': 'above',
      '/console/sign-in': 'below',
      '/verify': 'test/console/verify.test.ts',
      '/oauth/consent/{uid}': 'test/oauth-server/browser.test.ts',
      '/approve/{id}': 'test/approvals/page.accessible.test.ts',
    };

    test('every served page is checked here or in a named test', () => {
      const pages = readPages().filter(({ type }) => type.startsWith('text/html'));
      expect(pages.map(({ path }) => path).sort()).toEqual([...Object.keys(READY), ...Object.keys(ELSEWHERE)].sort());
      for (const file of Object.values(ELSEWHERE).filter((where) => where.endsWith('.ts')))
        expect(readFileSync(file, 'utf8'), file).toMatch(/expectAccessible\(|axeFindings\(/);
    });

    test('the sign-in page, without a session', async () => {
      const stranger = await browser.page(PHONE);
      await stranger.open(`${world.running.baseUrl}/console/sign-in`);
      await stranger.until(has('h1'));
      await expectAccessible(stranger, 'signing in');
      await picture(stranger, 'console-sign-in');
      await stranger.close();
    });

    test.each(Object.entries(READY))('%s', async (path, ready) => {
      if (!(await page.value(`location.pathname.startsWith('/console')`))) await go('/console', has('main'));
      if (path === '/console/activity') {
        for (const call of [READ, { ...READ, scope: 'demo:write' }]) await agent.act(call);
        // A call with a history has one more line.
        const { body } = await agent.act(WRITE);
        await expectStatus(200, organisation.deny(body.approval_id, { note: 'No.' }));
      }
      const policy = path.includes('{name}') ? await organisation.policy(CAREFUL) : '';
      const { policies } = (await organisation.ask('GET', '/owner/policies')).body;
      const name = policies.find(({ id }: { id: string }) => id === policy)?.name;
      await follow(path.replace('{id}', agent.agentId).replace('{name}', name), has(ready));
      if (path === '/console/activity') {
        await expectAccessible(page, 'closed lines');
        await page.click('#activity summary');
        await page.until(has('#activity .facts'));
      }
      await expectAccessible(page, path);
      await picture(page, path.slice(1).replaceAll('/', '-').replace(/[{}]/g, ''));
    });
  },
  120_000,
);
