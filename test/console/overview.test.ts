/** The overview: from an empty organisation to plots, with the mouse alone and the keyboard alone, and as tables. */
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, isLive, openConsole, PHONE, tabTo } from '../world/browser/console.ts';
import { auditRow } from '../world/rows.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, shared, WRITE } from '../world/world.ts';

describeInChromium('the overview', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const textOf = (selector: string) =>
    page.value<string>(`document.querySelector('${selector}').innerText.replace(/\\s+/g, ' ')`);
  const drawn = (id: string) =>
    page.until(`(() => {
        const canvas = document.querySelector('#${id} canvas');
        if (!canvas) return false;
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return data.some((one) => one !== 0);
      })()`);
  test('an empty organisation reads what the page will show, and the plot library is not loaded', async () => {
    await page.click('nav a[href="/console/overview"]');
    await page.until(`document.querySelector('.empty')?.innerText.includes('No calls in this time')`);
    await expectAccessible(page, 'the empty overview');
    await page.resize(DESKTOP);
    // Modules of the page have preload links; the plot library is loaded with the first plot.
    expect(await page.value(`document.querySelectorAll('link[href*="uplot"]').length`)).toBe(0);
    await page.click('.empty a');
    await page.until(`location.pathname === '/console/agents'`);
  });

  describe('with calls', () => {
    beforeAll(async () => {
      const now = Date.now();
      const other = await organisation.agent({ name: 'a-long-name-of-an-agent-without-any-space-in-it-at-all' });
      const rows: AuditRow[] = [];
      for (let hour = 1; hour < 160; hour++)
        for (let call = 0; call < 3 + Math.round(4 * Math.sin(hour / 5) ** 2); call++) {
          const at = now - hour * HOUR_MS - call * 1000;
          const ended = {
            allowed: { upstream_status: (hour * call) % 17 === 3 ? 502 : 200 },
            denied: {},
            errored: {},
          };
          const result = call === 2 ? 'denied' : call === 5 && hour % 4 === 0 ? 'errored' : 'allowed';
          rows.push(
            auditRow({
              organisation_id: organisation.id,
              id: uuidv7(at),
              created_at: at,
              state: 'final',
              result,
              ...ended[result],
              reason: result === 'denied' ? 'denied_by_policy' : 'approved',
              agent_public_id: call % 3 ? agent.agentId : other.agentId,
              platform_id: call % 2 ? 'demo' : 'other',
              finished_at: at,
              row_hash: 'x',
              receipt: 'x',
            }),
          );
        }
      for (let at = 0; at < rows.length; at += 200)
        await world.db
          .insertInto('audit_rows')
          .values(rows.slice(at, at + 200))
          .execute();
      for (const minutes of [200, 90, 3]) {
        world.clock.skewMs = -minutes * 60_000;
        const { body } = await agent.act(WRITE);
        world.clock.skewMs = -minutes * 30_000;
        await organisation.deny(body.approval_id);
      }
      world.clock.skewMs = 20_000;
    });

    test('with the mouse alone: plots, values under the pointer, tables, and links from a number to its calls', async () => {
      await go('/console/overview');
      await drawn('calls');
      await drawn('decisions');
      expect(await textOf('.figures')).toMatch(/Calls \d+ Held 3 Refused \d+ Failed \d+ Time to decision 45 min/);
      await page.click('#calls .plot');
      await page.until(`/Calls \\d+, Held \\d+/.test(document.querySelector('#calls .readout').innerText)`);
      await page.click('#calls summary');
      await page.until(`document.querySelectorAll('#calls tbody tr').length === 168`);
      const sum = await page.value<number>(
        `[...document.querySelectorAll('#calls tbody tr td:nth-child(2)')].reduce((sum, one) => sum + Number(one.innerText), 0)`,
      );
      expect(await textOf('.figure dd')).toBe(sum.toLocaleString('en-US'));
      expect(await textOf('#failing tbody tr')).toMatch(/^(demo|other) \d+ \d+ [\d.]+%$/);
      await page.click('#busiest tbody a');
      await page.until(
        `location.pathname === '/console/activity' && document.querySelectorAll('#activity .row').length > 10`,
      );
      expect(await page.value('location.search')).toBe(`?time=7d&agent=${agent.agentId}`);
      expect(page.complaints).toEqual([]);
    });

    test('with the keyboard alone: the range is changed and kept in the URL, and the table is opened', async () => {
      await go('/console/overview');
      await drawn('calls');
      await page.value('document.activeElement.blur()');
      await tabTo(page, '#range');
      await page.press('ArrowUp');
      await page.until(`location.search === '?range=day' && document.querySelector('#calls canvas') !== null`);
      await page.open(await page.value<string>('location.href'));
      await isLive(page);
      await drawn('calls');
      await tabTo(page, '#calls summary');
      await page.press('Enter');
      await page.until(`document.querySelectorAll('#calls tbody tr').length === 24`);
      await tabTo(page, '#calls .scroll');
      await tabTo(page, '#failing tbody a');
      await page.press('Enter');
      await page.until(
        `location.pathname === '/console/activity' && location.search.startsWith('?time=24h&platform=')`,
      );
    });

    test('accessible, with plots and open tables', async () => {
      await go('/console/overview?range=day');
      await drawn('calls');
      await page.click('#calls summary');
      await expectAccessible(page, 'the overview of a day');
    });

    test('pictures; a plot uses the chosen colour scheme', async () => {
      for (const [name, size, as] of [
        ['desktop', DESKTOP, 'window'],
        ['phone', PHONE, 'phone'],
      ] as const) {
        await page.resize(size, as);
        for (const scheme of ['light', 'dark'] as const) {
          await page.prefer(scheme);
          await go('/console/overview');
          await drawn('calls');
          await pause(250);
          await page.screenshot(`console-overview-${name}-${scheme}.png`);
          await page.value(`document.querySelector('#decisions').scrollIntoView()`);
          await page.screenshot(`console-overview-end-${name}-${scheme}.png`);
        }
      }
      await page.resize(DESKTOP);
      await page.prefer('light');
      await go('/console/activity');
      await page.until(`document.querySelector('#activity .row') !== null`);
      await page.screenshot('console-activity-desktop-light.png');
      expect(page.complaints).toEqual([]);
    });
  });
});
