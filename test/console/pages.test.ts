/** The pages next to the inbox: agents and how they are stopped, activity, navigation and empty pages. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, isLive, openConsole, PHONE, says } from '../world/browser/console.ts';
import { childOf } from '../world/child.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const HOSTILE = '<img src=x onerror=alert(1)>\u202e';

describeInChromium('the console’s pages', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const triage = shared(() => organisation.agent({ name: 'triage' }));
  const bot = shared(() => organisation.agent({ name: HOSTILE }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  const go = (path: string, on = page) => goTo(on, world.running.baseUrl + path);
  const row = (agent: TestAgent) => `[data-agent="${agent.agentId}"]`;
  const rowSays = (agent: TestAgent, words: string) =>
    page.until(`document.querySelector('${row(agent)}').innerText.includes(${JSON.stringify(words)})`);

  test.each(['/', '/console/'])('%s leads to the console', async (path) => {
    await page.open(world.running.baseUrl + path);
    await page.until(`location.pathname === '/console'`);
    await isLive(page);
  });

  describe('agents', () => {
    beforeAll(() => go('/console/agents'));

    test('suspending asks for confirmation, gives the agent the reason, and applies to its next call', async () => {
      await page.click(`${row(triage)} .suspend`);
      await page.until(`document.querySelector('dialog')?.innerText.includes('Suspend triage?')`);
      await page.press('Escape');
      await page.until(`document.querySelector('dialog') === null`);
      expect((await triage.act(READ)).status).toBe(200);
      await page.click(`${row(triage)} .suspend`);
      await page.click('#why');
      await page.type('looks odd');
      await page.click('#move');
      await says(page, 'triage is suspended.');
      await rowSays(triage, '“looks odd”');
      expect((await triage.act(READ)).body).toMatchObject({ error: 'agent_halted', halt: { detail: 'looks odd' } });
    });

    test('a resumed agent can call again; the focus is back on the pressed button', async () => {
      await page.click(`${row(triage)} .resume`);
      await page.click('#move');
      await rowSays(triage, 'Active');
      expect((await triage.act(READ)).status).toBe(200);
    });

    test('the confirmation of revoking states that it cannot be undone', async () => {
      const doomed = await organisation.agent({ name: 'doomed' });
      await go(`/console/agents/${doomed.agentId}`);
      await page.click('.page-head [data-verb="revoke"]');
      await page.until(`document.querySelector('dialog')?.innerText.includes('This cannot be undone')`);
      await page.click('#move');
      await page.until(`document.querySelector('h1').innerText.includes('Revoked')`);
      await go('/console/agents');
      await rowSays(doomed, 'Revoked');
      expect(await page.value(`document.querySelectorAll('${row(doomed)} button').length`)).toBe(1);
      expect(await page.value(`[...document.querySelectorAll('#agents .row')].at(-1).dataset.agent`)).toBe(
        doomed.agentId,
      );
      await page.click(`${row(doomed)} .delete`);
      await page.until(`document.querySelector('dialog')?.innerText.includes('audit records are kept')`);
      await page.click('#move');
      await page.until(`document.querySelector('${row(doomed)}') === null`);
    });

    test('an agent that has not bound its key yet is shown as such, and can only be revoked', async () => {
      const newcomer = await organisation.agent({ name: 'newcomer', agent: { status: 'pending' } });
      await go('/console/agents');
      await rowSays(newcomer, 'Approved, key not collected');
      expect(await page.value(`document.querySelector('${row(newcomer)}').innerText`)).toMatch(
        /It was approved (just now|\d+ s ago), and starts when it collects its key\. After an hour it is revoked\./,
      );
      expect(await page.value(`document.querySelectorAll('${row(newcomer)} button').length`)).toBe(0);
      await go(`/console/agents/${newcomer.agentId}`);
      const buttons = `[...document.querySelectorAll('.page-head button:not(.copy)')].map((one) => one.dataset.verb)`;
      expect(await page.value(buttons)).toEqual(['revoke']);
      await page.click('.page-head [data-verb="revoke"]');
      await page.click('#move');
      await page.until(`document.querySelector('.agent-page').innerText.includes('Stopped by an owner')`);
    });

    test('an open breaker is shown with the time left', async () => {
      for (let call = 0; call < 50; call++) await triage.act('{}');
      await go('/console/agents');
      await rowSays(triage, 'Paused');
      await rowSays(triage, 'Too many malformed calls: such calls are refused for another');
      await world.forgive();
    });

    test('a child agent shows its parent, and is shown as stopped when the parent is revoked', async () => {
      const parent = await organisation.agent({ name: 'planner' });
      const child = await childOf(world, organisation, parent, { name: 'reader' });
      await go('/console/agents');
      await rowSays(child, `child of ${parent.agentId}`);
      await rowSays(child, 'Active');
      await page.click(`${row(parent)} .name a`);
      await page.click(`#children a[href="/console/agents/${child.agentId}"]`);
      await page.until(`document.querySelector('h1').innerText.startsWith('reader')`);
      await organisation.ask('POST', `/owner/agents/${parent.agentId}/revoke`, {});
      await go('/console/agents');
      await rowSays(child, 'Its parent is revoked');
      await go(`/console/agents/${child.agentId}`);
      await page.click('.page-head [data-verb="revoke"]');
      await page.click('#move');
      await page.until(`document.querySelector('.agent-page').innerText.includes('Stopped by an owner')`);
    });

    test('AP-13 the name of an agent is shown as text', async () => {
      await go('/console/agents');
      await rowSays(bot, '<img src=x onerror=alert(1)>⟦U+202E⟧');
      expect(await page.value(`document.querySelectorAll('main img').length`)).toBe(0);
    });

    test('a person without the admin role sees the agents and has no buttons', async () => {
      const approver = await openConsole(world, browser, await organisation.addOwner('approver'));
      await go('/console/agents', approver);
      await approver.until(`document.body.innerText.includes('an admin can stop agents')`);
      expect(await approver.value(`document.querySelectorAll('#agents tbody button').length`)).toBe(0);
    });
  });

  describe('activity', () => {
    beforeAll(async () => {
      await triage.act(READ);
      await triage.act({ ...READ, scope: 'demo:write' });
      await bot.act({ ...READ, scope: 'demo:nonsense' });
      await bot.act({ ...READ, method: 'SEND' });
    });
    const results = () =>
      page.value<string[]>(
        `[...new Set([...document.querySelectorAll('#activity .badge')].map((one) => one.innerText))]`,
      );
    const choose = async (select: string, value: string) => {
      await page.until(`document.querySelector('${select} [value="${value}"]') !== null`);
      await page.value(`(() => {
        const found = document.querySelector('${select}');
        found.value = ${JSON.stringify(value)};
        found.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
    };

    test('is listed newest first and filtered by result and agent in the URL, which survives a reload', async () => {
      await go('/console/activity');
      expect(await results()).toEqual(expect.arrayContaining(['Allowed', 'Refused', 'Failed']));
      const words = await page.value<string>(`document.querySelector('#activity').innerText`);
      expect(words).toContain('a call that was not read');
      expect(words).not.toMatch(/\b(?:null|undefined)\b/);
      await choose('#by-result', 'denied');
      await page.until(
        `location.search === '?result=denied' && new Set([...document.querySelectorAll('#activity .badge')].map((one) => one.innerText)).size === 1`,
      );
      expect(await results()).toEqual(['Refused']);
      await choose('#by-agent', bot.agentId);
      await page.until(
        `location.search.includes('agent=${bot.agentId}') && document.querySelectorAll('#activity .row').length === 1`,
      );
      await page.open(await page.value<string>('location.href'));
      await isLive(page);
      await page.until(`document.querySelectorAll('#activity .row').length === 1`);
      expect(
        await page.value(`document.querySelector('#by-result').value + document.querySelector('#by-agent').value`),
      ).toBe(`denied${bot.agentId}`);
    });

    test('the filter keeps an agent id of the URL that is not in the list of agents', async () => {
      await go('/console/activity?agent=agt_00000000000000000000');
      await page.until(`document.querySelectorAll('#by-agent option').length > 2`);
      expect(await page.value(`document.querySelector('#by-agent').value`)).toBe('agt_00000000000000000000');
      await go(`/console/activity?result=denied&agent=${bot.agentId}`);
      // Once the name is loaded, the option of the id gets it, and there is no second option.
      await page.until(`document.querySelector('#by-agent').selectedOptions[0]?.text.includes('<img')`);
      expect(await page.value(`document.querySelectorAll('#by-agent [value="${bot.agentId}"]').length`)).toBe(1);
    });

    test('a row opens to the reason of its result and its receipt', async () => {
      await page.click('#activity summary');
      await page.until(`document.querySelector('#activity .facts') !== null`);
      expect(await page.value(`document.querySelector('#activity .facts').innerText`)).toContain('scope_not_granted');
      await page.click('#activity .facts a[href^="/console/receipt"]');
      await page.until(`document.querySelector('#verdict')?.dataset.valid === 'true'`);
    });

    test('changes by owners are listed, too', async () => {
      const stopped = await organisation.agent({ name: 'stopped' });
      await go('/console/agents');
      await page.click(`${row(stopped)} .suspend`);
      await page.click('#move');
      await says(page, 'stopped is suspended.');
      await go('/console/activity?result=event');
      await page.until(`document.querySelector('#activity')?.innerText.includes('stopped was suspended')`);
      // Rows of the broker's own background jobs may be in between.
      const line = `[...document.querySelectorAll('#activity .row')].find((one) => one.innerText.includes('stopped was suspended'))`;
      await page.value(`${line}.querySelector('summary').click()`);
      await page.until(`${line}.innerText.includes('${organisation.owner.email}, in the console')`);
    });

    test('older rows are loaded on request, each once', async () => {
      for (let call = 0; call < 60; call++) await triage.act(READ);
      await go('/console/activity');
      await page.until(`document.querySelectorAll('#activity .row').length === 50`);
      await page.click('.more button');
      await page.until(`document.querySelectorAll('#activity .row').length > 60`);
      expect(
        await page.value(`(() => {
          const ids = [...document.querySelectorAll('#activity .row')].map((one) => one.dataset.row);
          return ids.length - new Set(ids).size;
        })()`),
      ).toBe(0);
    });

    test('a filter without a matching row shows a message', async () => {
      await go(`/console/activity?result=blocked&agent=${bot.agentId}`);
      await page.until(`document.querySelector('main').innerText.includes('Nothing fits')`);
    });
  });

  describe('navigation', () => {
    test('links navigate without loading the document again, and Back returns', async () => {
      await go('/console');
      await page.value('window.same = true');
      await page.click('nav a[href="/console/agents"]');
      await page.until(
        `document.querySelector('h1').innerText === 'Agents' && document.title === 'Agents · Agent Broker'`,
      );
      await page.value('history.back()');
      await page.until(`document.querySelector('h1').innerText === 'Inbox'`);
      expect(await page.value('window.same')).toBe(true);
    });

    test('at 360 px no page is wider than the window', async () => {
      const phone = await openConsole(world, browser, organisation.owner, PHONE);
      const long = { ...READ, endpoint: `/items/${'x'.repeat(300)}`, scope: 'demo:read' };
      await triage.act(long);
      for (const path of ['/console', '/console/agents', '/console/activity']) {
        await go(path, phone);
        expect([path, await phone.value('document.documentElement.scrollWidth')]).toEqual([path, PHONE.width]);
      }
      expect(phone.complaints).toEqual([]);
    });

    test('a new organisation shows the next steps', async () => {
      const fresh = await openConsole(world, browser, (await world.organisation()).owner);
      await fresh.until(`document.querySelector('main').innerText.includes('agent create')`);
      // An admin needs no terminal.
      expect(await fresh.value(`document.querySelector('#invite-one').pathname`)).toBe('/console/agents/new');
      await go('/console/agents', fresh);
      expect(await fresh.value(`document.querySelector('main').innerText`)).toContain('agent create');
      await go('/console/activity', fresh);
      expect(await fresh.value(`document.querySelector('main').innerText`)).toContain('No agent made a call yet');
    });

    test('the pages caused no violation of their Content-Security-Policy', () => {
      expect(page.complaints).toEqual([]);
    });
  });
});
