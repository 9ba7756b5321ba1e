/** The demo that an empty page starts with the sandbox, in a real browser: by keyboard alone, and in thorough runs a whole demo also by mouse alone. */
import { describe, expect, test } from 'vitest';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, isLive, openConsole, says } from '../world/browser/console.ts';
import { keyboard, mouse } from '../world/browser/input-device.ts';
import { picture } from '../world/browser/pictures.ts';
import { thorough } from '../world/runner/thorough.ts';
import { givenSandbox } from '../world/sandbox.ts';
import { shared } from '../world/world.ts';

const HANDS = { keyboard, mouse };
const SAID =
  'Reading the issues: allowed. Closing one with a scope that reads: refused. A refund of 1 EUR: held. It waits in the inbox.';
const there = (page: Page, selector: string, words = '') =>
  page.until(
    `document.querySelector(${JSON.stringify(selector)})?.innerText.replace(/\\s+/g, ' ').includes(${JSON.stringify(words)}) ?? false`,
  );

/** The element that each page shows after the demo. The address of the sandbox agent's page is not known in advance. */
const PAGES: Record<string, { path: string; live: (page: Page) => Promise<void> }> = {
  inbox: { path: '', live: (page) => there(page, '.card', 'refund 1.00 EUR of payment pay_1001') },
  activity: {
    path: '/activity',
    live: (page) =>
      page.until(`['Allowed', 'Refused', 'Held'].every((words) => [...document.querySelectorAll('#activity .badge')].some((one) => one.innerText === words))
        && !document.querySelector('.empty')`),
  },
  overview: { path: '/overview', live: (page) => there(page, '#calls', 'Calls') },
  reports: { path: '/reports', live: (page) => there(page, '#reports', 'I wanted to close issue 1, and was refused.') },
  agent: { path: '/agents/', live: (page) => there(page, '#timeline #activity', 'change issue 1') },
  'standing approvals': {
    path: '/standing-approvals',
    live: (page) => there(page, '#demo-next', 'Approve it in the inbox'),
  },
};

describeInChromium(
  'the demo of an empty page',
  () => {
    const browser = shared(() => startBrowser());

    describe.each(Object.keys(PAGES))('%s', (name) => {
      const { world, organisation } = givenSandbox();

      test('the page is empty, and has content after one key press', async () => {
        const page = await openConsole(world, browser, organisation.owner);
        const { path, live } = PAGES[name]!;
        const { agent_id } = (await organisation.ask('GET', '/owner/demo')).body;
        await goTo(page, `${world.running.baseUrl}/console${path}${name === 'agent' ? agent_id : ''}`);
        await page.until(`document.querySelector('#show-demo') !== null`);
        await expectAccessible(page, `${name}, empty`);
        await page.resize(DESKTOP);
        // Clicking it with the mouse needs that nothing covers it.
        await page.until(`((button) => {
          button.scrollIntoView({ block: 'center' });
          const { x, y, width, height } = button.getBoundingClientRect();
          return button.contains(document.elementFromPoint(x + width / 2, y + height / 2));
        })(document.querySelector('#show-demo'))`);
        await picture(page, `demo-empty-${name}`);
        await keyboard(page).use('#show-demo');
        await says(page, SAID);
        await live(page);
        await page.until(`document.activeElement.matches('h1') || document.querySelector('#show-demo') !== null`);
        // The other pages with content are checked in accessible.test.ts and overview.test.ts.
        if (['reports', 'standing approvals'].includes(name)) await expectAccessible(page, `${name}, live`);
        await picture(page, `demo-live-${name}`);
        expect(page.complaints).toEqual([]);
        await page.close();
      });
    });

    describe.each(thorough ? (['keyboard', 'mouse'] as const) : (['keyboard'] as const))(
      'a whole demo with the %s alone',
      (by) => {
        const { world, organisation, ask } = givenSandbox();
        const refunds = async () => (await ask('/refunds')).body.items as { payment: string; amount: number }[];

        test('the demo ends with the approved refund, its receipt, and the next refund made under a standing approval', async () => {
          const page = await openConsole(world, browser, organisation.owner);
          const { use, fill } = HANDS[by](page);
          const follow = async (selector: string, path: string) => {
            await use(selector);
            await page.until(`location.pathname === '/console${path}'`);
            await isLive(page);
          };
          const before = await refunds();
          await use('#show-demo');
          await says(page, SAID);
          await use('.card .opener');
          await there(page, '.card', 'A demo that an admin began in the console.');
          await page.until(`document.querySelector('.decide .approve:enabled') !== null`);
          await use('.decide .approve');
          await use('dialog .standing summary');
          await fill('#standing-count', '3');
          await use('dialog #approve');
          await says(page, 'and made');
          expect((await refunds()).length).toBe(before.length + 1);
          expect((await refunds())[0]).toMatchObject({ payment: 'pay_1001', amount: 100 });
          await follow('nav a[href="/console/activity"]', '/activity');
          await there(page, '#activity', 'made: status 201');
          await use('#activity li:has([data-kind]) summary');
          await use('#activity .facts dd > a[href^="/console/receipt"]');
          await page.until(`document.querySelector('#verdict')?.dataset.valid === 'true'`);
          await there(page, '#says', 'sandbox-agent');
          if (by === 'mouse') await picture(page, 'demo-receipt');
          await follow('nav a[href="/console"]', '');
          await use('#show-demo');
          await says(page, 'A refund of 1 EUR: allowed.');
          expect((await refunds()).length).toBe(before.length + 2);
          await follow('a[href="/console/standing-approvals"]', '/standing-approvals');
          await there(page, '[data-standing]', '2 of 3 left');
          expect(page.complaints).toEqual([]);
          await page.close();
        });
      },
    );

    describe('when the demo cannot run', () => {
      const { world, organisation } = givenSandbox();

      test.each(['approver', 'viewer'] as const)('a person with the role %s reads who can start it', async (role) => {
        const page = await openConsole(world, browser, await organisation.addOwner(role));
        await there(page, '#no-demo', `Your role is ${role}: an admin can show this page live, with the sandbox.`);
        expect(await page.value(`document.querySelector('#show-demo')`)).toBeNull();
        await page.close();
      });

      test('without a sandbox every role reads how to get one, with a link to the guide', async () => {
        const page = await openConsole(world, browser, (await world.demoOrganisation()).owner);
        await there(page, '#no-demo', 'This organisation has no sandbox.');
        await expectAccessible(page, 'an inbox without a sandbox');
        await page.open(await page.value(`document.querySelector('#no-demo a').href`));
        await page.until(
          `document.getElementById(location.hash.slice(1))?.parentElement.innerText.includes('AGENT_BROKER_DATA')`,
        );
        await page.close();
      });

      test('a demo that owners stopped is reported as stopped, not as done', async () => {
        const page = await openConsole(world, browser, organisation.owner);
        await organisation.ask('POST', '/owner/agents/suspend-all', {});
        await page.click('#show-demo');
        await says(page, 'Reading the issues: refused.');
        expect(await page.value(`document.querySelector('#said .toast').dataset.kind`)).toBe('wait');
        await organisation.ask('POST', '/owner/agents/resume-all');
        const { agent_id } = (await organisation.ask('GET', '/owner/demo')).body;
        await organisation.ask('POST', `/owner/agents/${agent_id}/suspend`, {});
        await page.click('#show-demo');
        await there(page, '#demo [role="alert"]', 'sandbox-agent is suspended');
        await page.close();
      });
    });
  },
  120_000,
);
