/** The console by keyboard alone: no task needs a pointer, and no key decides by accident. */
import { beforeAll, expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { card, isLive, openConsole, said, says, WAITING } from '../world/browser/console.ts';
import { givenWorld, shared } from '../world/world.ts';

describeInChromium('the console by keyboard', () => {
  let ids: string[];

  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  beforeAll(async () => {
    ids = [await hold('one'), await hold('two'), await hold('three')];
  });
  const page = shared(async () => await openConsole(world, await startBrowser(), organisation.owner));
  beforeAll(() => page.until(`${WAITING} === 3`));

  async function hold(note: string): Promise<string> {
    return agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { note } });
  }
  const focused = () => page.value<string>(`document.activeElement.closest('[data-entry]')?.dataset.entry ?? ''`);
  const statusOf = async (id: string) => (await agent.get(`/v1/approvals/${id}`)).body.status;
  const opened = () => page.until(`document.querySelector('.approve:enabled') !== null`);

  test('j, k and the arrows move the focus, and stop at the ends of the list', async () => {
    await page.press('j');
    await page.until(`document.activeElement.closest('[data-entry]') !== null`);
    expect(await focused()).toBe(`approval-${ids[0]}`);
    await page.press('j', 'j', 'j');
    await page.until(`document.activeElement.closest('[data-entry]').dataset.entry === 'approval-${ids[2]}'`);
    await page.press('k', 'ArrowUp', 'ArrowUp');
    await page.until(`document.activeElement.closest('[data-entry]').dataset.entry === 'approval-${ids[0]}'`);
  });

  test('a closed call is not approved: a opens it, a second a asks for confirmation, Escape cancels', async () => {
    await page.press('a');
    await says(page, 'Read it first');
    await opened();
    await page.press('a');
    await page.until(
      `document.querySelector('dialog')?.innerText.includes('triage wants to send a POST to /items with 1 field on demo')`,
    );
    // Typing other letters does not approve, either.
    await page.press('a', 'd', 'j', '?');
    expect(await page.value(`document.querySelectorAll('dialog').length`)).toBe(1);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect(await statusOf(ids[0]!)).toBe('pending');
    expect(world.upstream.seen).toEqual([]);
  });

  test('a, then Enter, approves; the focus moves to the next call', async () => {
    const waiting = agent.get(`/v1/approvals/${ids[0]}?wait=20`);
    await page.press('a');
    await page.until(`document.querySelector('dialog #approve') === document.activeElement`);
    await page.press('Enter');
    expect((await waiting).body).toMatchObject({ status: 'approved' });
    await says(page, 'and made: status 200');
    await page.until(`document.activeElement.closest('[data-entry]')?.dataset.entry === 'approval-${ids[1]}'`);
    expect(world.upstream.seen.length).toBe(1);
  });

  test('Enter opens, d asks for a reason, the arrows choose one, Enter denies', async () => {
    await page.press('Enter');
    await opened();
    await page.press('d');
    await page.until(`document.querySelector('dialog') !== null`);
    await page.press('ArrowRight');
    await page.until(`document.querySelector('.chip input[value="Not now"]').checked`);
    // Shortcut keys are plain letters in a text field.
    await page.press('Tab');
    await page.until(`document.activeElement.id === 'own'`);
    await page.press('a', 'j', 'd', '?');
    expect(await page.value(`document.querySelector('#own').value`)).toBe('ajd?');
    // The other call of the agent is denied only when the person chooses that.
    await page.press('Tab');
    await page.until(`document.activeElement.id === 'deny-all' && !document.activeElement.checked`);
    await page.press('Tab', 'Tab');
    await page.until(`document.activeElement.id === 'deny'`);
    await page.press('Enter');
    await says(page, 'Denied');
    expect((await agent.get(`/v1/approvals/${ids[1]}`)).body).toMatchObject({
      status: 'denied',
      note: 'Not now. ajd?',
    });
    await page.until(`document.activeElement.closest('[data-entry]')?.dataset.entry === 'approval-${ids[2]}'`);
  });

  test('a new call is added at the end, and does not move the focus', async () => {
    await page.press('Enter');
    await opened();
    await page.value(`document.querySelector('.approve').focus()`);
    const before = await page.value(`document.querySelector('.approve').getBoundingClientRect().top`);
    const fourth = await hold('four');
    await page.until(`document.querySelector('${card(fourth)}') !== null`);
    expect(await page.value(`document.activeElement.className`)).toContain('approve');
    expect(await page.value(`document.querySelector('.approve').getBoundingClientRect().top`)).toBe(before);
    expect(await page.value(`[...document.querySelectorAll('.card')].at(-1).dataset.entry`)).toBe(`approval-${fourth}`);
    await page.press('Escape');
    await page.until(`document.querySelector('.decide') === null`);
    expect(await focused()).toBe(`approval-${ids[2]}`);
  });

  test('? lists the keys; closing the list restores the focus', async () => {
    await page.press('?');
    await page.until(`document.querySelector('dialog')?.innerText.includes('the one before')`);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect(await focused()).toBe(`approval-${ids[2]}`);
  });

  test('Tab and Enter reach every page and sign out', async () => {
    await page.open(`${world.running.baseUrl}/console`);
    await isLive(page);
    await page.press('Tab');
    expect(await page.value('document.activeElement.textContent')).toBe('Skip to the content');
    await page.press('Tab', 'Tab', 'Tab', 'Enter');
    await page.until(`location.pathname === '/console/agents' && document.querySelector('#agents') !== null`);
    // Single-key shortcuts work in the inbox only.
    await page.press('a', 'd', '?');
    expect(await page.value(`document.querySelector('dialog')`)).toBe(null);
    await page.value(`document.querySelector('.account summary').focus()`);
    await page.press('Enter', 'Tab', 'Tab', 'Enter');
    await page.until(`location.pathname === '/console/passkeys'`);
    await page.value(`document.querySelector('nav a[href="/console/team"]').focus()`);
    await page.press('Tab', 'Enter');
    await page.until(`location.pathname === '/console/settings' && document.querySelector('#publish') !== null`);
    await page.value(`document.querySelector('.account summary').focus()`);
    await page.press('Enter', 'Tab', 'Tab', 'Tab', 'Enter');
    await page.until(`location.pathname === '/console/sign-in'`);
    expect(await said(page).catch(() => '')).toBe('');
  });
});
