/** Standing approvals in a real browser: chosen with an approval, described in a sentence, listed, and revoked. */
import { expect, test } from 'vitest';
import { axeFindings, overflowing } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { isLive, openConsole, PHONE, says } from '../world/browser/console.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

const FREE = { 'POST /items': ['/text', { member: '/amount', at_most: true }] };
const CALL = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };
const DATA = { to: 'ann', text: 'hello', amount: 50 };

describeInChromium('standing approvals in a browser', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation({ manifest: { free: FREE } }));
  const agent = fresh(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const hold = async (): Promise<string> => await agent.hold({ ...CALL, data: DATA });
  const status = async (data: object) => (await agent.act({ ...CALL, data })).status;
  const go = (path: string) => page.open(world.running.baseUrl + path);
  const begin = async (id: string) => {
    await go(`/approve/${id}`);
    await page.until(`document.querySelector('button.approve:enabled, .decide button.primary:enabled') !== null`);
    await page.click('.decide button.primary');
    await page.until(`document.querySelector('dialog .standing summary') !== null`);
    await page.click('dialog .standing summary');
  };

  test('a standing approval is chosen with an approval, and described before the confirmation', async () => {
    const id = await hold();
    await begin(id);
    await page.until(`document.querySelector('.standing-says')?.innerText.includes('The next 10 calls')`);
    await page.click('[id="standing-/text"]');
    await page.click('[id="standing-/amount"]');
    await page.until(
      `document.querySelector('.standing-says').innerText.includes('text (anything), amount (at most 50)')`,
    );
    expect(await axeFindings(page, 'dialog')).toEqual([]);
    await page.resize(PHONE);
    expect(await overflowing(page)).toEqual([]);
    await page.value(`document.querySelector('#standing-count').select()`);
    await page.type('0');
    await page.until(`document.querySelector('dialog #approve').disabled`);
    await page.click('#standing-count');
    await page.value(`document.querySelector('#standing-count').select()`);
    await page.type('2');
    await page.until(`document.querySelector('.standing-says').innerText.includes('The next 2 calls')`);
    await page.click('dialog #approve');
    await page.until(`document.querySelector('dialog') === null`);
    await page.until(`document.body.innerText.includes('The call was made')`);
    await page.resize({ width: 1280, height: 900 });
    expect(await status({ ...DATA, text: 'other', amount: 7 })).toBe(200);
    expect(await status({ ...DATA, amount: 51 })).toBe(202);
    expect(await status({ ...DATA, to: 'bob' })).toBe(202);
    const { body } = await organisation.ask('GET', `/owner/standing-approvals?agent=${agent.agentId}`);
    expect(body.standing_approvals).toMatchObject([{ count: 2, left: 1, how: 'console' }]);
  });

  test('an approval immediately after typing a number uses that number', async () => {
    await begin(await hold());
    await page.until(`document.querySelector('.standing-says')?.innerText.includes('The next 10 calls')`);
    // The next task of the browser runs before its next frame.
    await page.value(`new Promise((sent) => {
        const count = document.querySelector('#standing-count');
        count.value = '3';
        count.dispatchEvent(new Event('input', { bubbles: true }));
        const next = new MessageChannel();
        next.port1.onmessage = () => sent(document.querySelector('dialog #approve').click());
        next.port2.postMessage(0);
      })`);
    await page.until(`document.body.innerText.includes('The call was made')`);
    const { body } = await organisation.ask('GET', `/owner/standing-approvals?agent=${agent.agentId}`);
    expect(body.standing_approvals).toMatchObject([{ count: 3 }]);
  });

  test('an older standing approval is listed once, and no longer after it was revoked', async () => {
    const standing = { count: 5, for_seconds: 3600 };
    for (const text of ['one', 'two']) {
      const held = await agent.act({ ...CALL, data: { ...DATA, text } });
      expect((await organisation.approve(held.body.approval_id, { standing })).status).toBe(200);
    }
    await go('/console/receipt');
    await isLive(page);
    // Pages of one row, of which the older one begins with the row that the newest one has, too.
    await page.value(`(() => {
      const whole = window.fetch;
      window.fetch = async (asked, options) => {
        if (!String(asked).startsWith('/owner/standing-approvals?')) return whole(asked, options);
        const { standing_approvals: all } = await (await whole('/owner/standing-approvals?agent=${agent.agentId}', options)).json();
        const isOlder = String(asked).includes('before=');
        return Response.json({ standing_approvals: isOlder ? all : all.slice(0, 1), next: isOlder ? null : crypto.randomUUID() });
      };
      history.pushState(null, '', '/console/standing-approvals');
      dispatchEvent(new PopStateEvent('popstate'));
    })()`);
    const rows = `document.querySelectorAll('#standing-approvals .row').length`;
    await page.click('#older');
    await page.until(`document.querySelector('#older') === null`);
    expect(await page.value(rows)).toBe(2);
    await page.click('#standing-approvals .row:last-child .danger');
    await says(page, 'Revoked');
    await page.until(`${rows} === 1`);
  });

  test('standing approvals are listed with the calls left, and revoked with one tap', async () => {
    const standing = { count: 5, for_seconds: 3600, free: [{ member: '/text' }] };
    const made = await organisation.approve(await hold(), { standing });
    const row = `[data-standing="${made.body.standing_approval}"]`;
    expect(await status({ ...DATA, text: 'one of them' })).toBe(200);
    await go(`/console/activity?agent=${agent.agentId}`);
    const passed = `[...document.querySelectorAll('#activity .row[data-result="allowed"]')].find((one) => !one.querySelector('.trail'))`;
    await page.until(`${passed} !== undefined`);
    await page.value(`${passed}.querySelector('summary').click()`);
    await page.until(`${passed}.querySelector('.facts') !== null`);
    const facts = await page.value<string>(`${passed}.querySelector('.facts').innerText`);
    const { email } = organisation.owner;
    expect(facts).toContain(`a standing approval by ${email} allows it`);
    expect(facts).toContain(`given by ${email} with the API,`);
    await page.value(`${passed}.querySelector('.facts a[href*="/console/receipt"]').click()`);
    await page.until(`document.querySelector('#says')?.innerText.includes('4 left after this call')`);
    await go('/console');
    await isLive(page);
    await page.click('a[href="/console/standing-approvals"]');
    await page.until(`document.querySelector('${row}')?.innerText.includes('4 of 5 left')`);
    expect(await page.value(`document.querySelector('${row}').innerText`)).toContain('text (anything)');
    expect(await axeFindings(page, 'main')).toEqual([]);
    await page.resize(PHONE);
    expect(await overflowing(page)).toEqual([]);
    await page.resize({ width: 1280, height: 900 });
    await page.click(`${row} button`);
    await says(page, 'Revoked');
    await page.until(`document.querySelector('${row}') === null`);
    expect(await status(DATA)).toBe(202);
  });
});
