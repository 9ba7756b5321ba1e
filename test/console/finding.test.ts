/** Searching and filtering agents and the activity. */
import { beforeAll, describe, expect, test } from 'vitest';
import { newAgentId } from '../../broker/crypto/ids.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, openConsole } from '../world/browser/console.ts';
import { DAY_MS } from '../world/times.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

describeInChromium('search and filters in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const triage = shared(() => organisation.agent({ name: 'triage' }));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const names = () =>
    page.value<string[]>(`[...document.querySelectorAll('#agents .name strong')].map((one) => one.innerText)`);
  const options = (selector: string) =>
    page.value<string[]>(`[...document.querySelectorAll('${selector} option')].map((one) => one.text)`);
  const choose = async (selector: string, value: string) => {
    await page.until(`document.querySelector('${selector}') !== null`);
    await page.value(`(() => {
        const found = document.querySelector('${selector}');
        found.value = ${JSON.stringify(value)};
        found.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
  };

  describe('agents', () => {
    beforeAll(async () => {
      const careful = await organisation.policy([{ effect: 'deny' }], 'very careful');
      for (const n of [10, 9, 2]) await organisation.agent({ name: `worker-${n}`, policy: careful });
      for (let n = 0; n < 60; n++) await organisation.agent({ name: `crowd-${String(n).padStart(2, '0')}` });
      await organisation.agent({ name: 'a-stopped', agent: { status: 'suspended', status_cause: 'owner_manual' } });
      expect(triage.agentId).toBeTruthy();
    });

    test('are listed by name, fifty at first, each with its policy and owner', async () => {
      await go('/console/agents');
      await page.until(`document.querySelectorAll('#agents .row').length === 50`);
      const shown = await names();
      expect(shown.slice(0, 3)).toEqual(['a-stopped', 'crowd-00', 'crowd-01']);
      expect(await page.value(`document.querySelector('#fitting').innerText`)).toBe('65 agents');
      await page.click('#show-more');
      await page.until(`document.querySelectorAll('#agents .row').length === 65`);
      expect((await names()).slice(-4)).toEqual(['triage', 'worker-10', 'worker-2', 'worker-9']);
      const row = await page.value<string>(`[...document.querySelectorAll('#agents .row')].at(-1).innerText`);
      expect(row).toContain('very careful');
      expect(row).toContain(organisation.owner.email);
    });

    test('are found by name, policy, owner and state; the URL keeps the filter', async () => {
      await go('/console/agents');
      await page.click('#words');
      await page.type('careful worker');
      await page.until(`document.querySelectorAll('#agents .row').length === 3`);
      expect(await page.value(`document.querySelector('#fitting').innerText`)).toBe('3 found');
      await page.open(await page.value<string>('location.href'));
      await page.until(`document.querySelectorAll('#agents .row').length === 3`);
      expect(await page.value('location.search')).toBe('?words=careful+worker');
      await choose('#by-state', 'suspended');
      await page.until(`document.querySelector('#none-fits') !== null`);
      await page.click('#none-fits a');
      await page.until(`document.querySelectorAll('#agents .row').length === 50`);
      await choose('#by-state', 'suspended');
      await page.until(`document.querySelectorAll('#agents .row').length === 1`);
      expect(await names()).toEqual(['a-stopped']);
    });
  });

  describe('activity', () => {
    beforeAll(async () => {
      await organisation.platform({ id: 'other', manifest: { scopes: { 'other:read': ['GET /items'] } } });
      const grants = { other: { scopeList: ['other:read'] } };
      const reader = await organisation.agent({ name: 'Reader', grants });
      world.clock.skewMs = -3 * DAY_MS;
      await triage.act(READ);
      world.clock.skewMs = 0;
      await reader.act({ ...READ, platform: 'other', scope: 'other:read' });
      expect((await triage.act(WRITE)).status).toBe(202);
    });
    const rows = (count: number) => page.until(`document.querySelectorAll('#activity .row').length === ${count}`);
    const dayOf = (ms: number) =>
      page.value<string>(`(({ y, m, d }) => [y, m, d].join('-'))(((date) => ({
          y: date.getFullYear(), m: String(date.getMonth() + 1).padStart(2, '0'), d: String(date.getDate()).padStart(2, '0'),
        }))(new Date(Date.now() + ${ms})))`);

    test('names agents that are not among those of the filter, which says how to find more', async () => {
      const { db } = world.running.broker.store;
      const row = await db
        .selectFrom('agents')
        .selectAll()
        .where('agent_id', '=', triage.agentId)
        .executeTakeFirstOrThrow();
      // Before triage in the order of names.
      const others = Array.from({ length: 200 }, (_, at) => ({
        ...row,
        id: crypto.randomUUID(),
        agent_id: newAgentId(),
        name: `a ${at}`,
        status: 'pending' as const,
        public_key_pem: null,
        key_fingerprint: null,
      }));
      await db.insertInto('agents').values(others).execute();
      await go('/console/activity?result=allowed');
      await page.until(`document.querySelectorAll('#by-agent option').length > 200`);
      expect((await options('#by-agent')).at(-1)).toBe('Search for others by their name');
      expect(await page.value(`document.querySelector('#by-agent [value="${triage.agentId}"]')`)).toBeNull();
      await page.until(`document.querySelector('#activity').innerText.includes('triage')`);
      await go(`/console/activity?agent=${triage.agentId}`);
      await page.until(`document.querySelector('#by-agent').selectedOptions[0]?.text === 'triage'`);
      const ids = others.map(({ id }) => id);
      await db.deleteFrom('agents').where('id', 'in', ids).execute();
    });

    test('is filtered by platform; platforms and agents are listed by name', async () => {
      await go('/console/activity?result=allowed');
      await rows(2);
      await page.until(`document.querySelectorAll('#by-platform option').length === 3`);
      await page.until(`document.querySelectorAll('#by-agent option').length > 60`);
      const agents = (await options('#by-agent')).slice(1);
      expect(agents).toEqual([...agents].sort((a, b) => a.localeCompare(b, undefined, { numeric: true })));
      const reasons = await options('#by-reason');
      expect(
        reasons.filter((one, at) => reasons.indexOf(one) < at),
        'reasons that read like another one',
      ).toEqual([]);
      await choose('#by-platform', 'other');
      await page.until(`location.search === '?result=allowed&platform=other'`);
      await rows(1);
    });

    test('is filtered by a range of days, which includes the whole last day', async () => {
      const [yesterday, threeAgo] = [await dayOf(-DAY_MS), await dayOf(-3 * DAY_MS)];
      await go(`/console/activity?result=allowed&from=${yesterday}`);
      await rows(1);
      expect(await page.value(`document.querySelector('#from').value`)).toBe(yesterday);
      const tops = await page.value<number[]>(
        `[...document.querySelectorAll('.filter .day input')].map((one) => Math.round(one.getBoundingClientRect().top))`,
      );
      expect(Math.max(...tops) - Math.min(...tops)).toBeLessThan(10);
      await choose('#from', '');
      await rows(2);
      await choose('#to', threeAgo);
      await page.until(`location.search === '?time=days&to=${threeAgo}&result=allowed'`);
      await rows(1);
      expect(await page.value(`document.querySelector('#activity .row').innerText`)).toContain('triage');
      await go('/console/activity?result=allowed&from=soon');
      await rows(2);
    });

    test('the export contains the rows that the filter shows', async () => {
      await go('/console/activity?result=allowed&platform=other');
      await rows(1);
      const lines = await page.value<string>(
        `fetch(document.querySelector('#export').href).then((answer) => answer.text())`,
      );
      const exported = lines
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(exported.map(({ platform_id, result }) => [platform_id, result])).toEqual([['other', 'allowed']]);
      expect(exported[0].receipt.split('.')).toHaveLength(3);
    });

    test('the line of a held call links to its approval page', async () => {
      await go('/console/activity?result=held');
      await rows(1);
      await page.click('#activity summary');
      await page.click('#activity .facts a[href^="/approve/"]');
      await page.until(`location.pathname.startsWith('/approve/') && document.querySelector('.decide') !== null`);
      expect(page.complaints).toEqual([]);
    });
  });
});
