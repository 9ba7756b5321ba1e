/** A call that several people have to approve, on the approval page and in the inbox. */
import { expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { approve, card, look, openConsole, says, signInByLink } from '../world/browser/console.ts';
import { complaintsOf, DESK, hold, isDisabled, openHeld, PHONE, signOut, text } from '../world/browser/held-page.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

const RULES = [{ effect: 'allow' }, { effect: 'require_approval', methods: ['POST'], approvers: 2 }];

describeInChromium('a call that several people approve, in a browser', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage', rules: RULES }));
  const ann = fresh(() => organisation.addOwner('approver'));
  const browser = shared(() => startBrowser());
  const FIRST = 'Your approval is recorded: 1 of 2 people have approved.';

  test('on the page: who approved is shown, the same person cannot approve again, and the second makes the call', async () => {
    const page = await browser.page(PHONE);
    await signInByLink(page, world, ann);
    const id = await hold(agent);
    await openHeld(page, world, id);
    expect(await text(page, '.approvers')).toBe('2 people have to approve; nobody has yet.');
    await page.click('.decide .approve');
    expect(await text(page, 'dialog')).toContain('Others have to approve it, too.');
    await page.click('dialog #approve');
    await page.until(`document.querySelector('.said')?.innerText.startsWith(${JSON.stringify(FIRST)})`);
    expect(await text(page, '.approvers')).toBe('2 people have to approve; 1 has.');
    expect(await isDisabled(page, '.decide .approve')).toBe(true);
    expect(await isDisabled(page, '.decide .deny')).toBe(false);
    // Also after the page was opened again.
    await openHeld(page, world, id);
    await page.until(`document.querySelector('.said')?.innerText.startsWith(${JSON.stringify(FIRST)})`);
    expect(await isDisabled(page, '.decide .approve')).toBe(true);
    expect(world.upstream.seen).toEqual([]);
    await organisation.approve(id);
    await page.until(`document.querySelector('.outcome h1') !== null`, 20_000);
    expect(world.upstream.seen.length).toBe(1);
    expect(complaintsOf(page)).toEqual([]);
    await signOut(page);
  });

  test('on the page: who approved a request that was corrected since can approve the corrected one', async () => {
    const page = await browser.page(PHONE);
    await signInByLink(page, world, ann);
    const id = await hold(agent, { data: { amount: 500 } });
    await openHeld(page, world, id);
    await page.click('.decide .approve');
    await page.click('dialog #approve');
    await page.until(`document.querySelector('.said')?.innerText.startsWith(${JSON.stringify(FIRST)})`);
    const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    const corrected = { request_hash, data: { amount: 50 } };
    expect((await organisation.ask('POST', `/owner/approvals/${id}/correct`, corrected)).status).toBe(200);
    await page.until(`document.querySelector('.notice[role="alert"] button') !== null`, 20_000);
    await page.click('.notice[role="alert"] button');
    await page.until(`document.querySelector('.approvers')?.innerText === '2 people have to approve; nobody has yet.'`);
    await page.until(`document.querySelector('.decide .approve:enabled') !== null`);
    await page.click('.decide .approve');
    await page.click('dialog #approve');
    await page.until(`document.querySelector('.said')?.innerText.startsWith(${JSON.stringify(FIRST)})`);
    expect((await organisation.ask('GET', `/owner/approvals/${id}`)).body.approvers.given).toBe(1);
    await signOut(page);
  });

  test('in the inbox: the call stays, with who approved, until the second person approves', async () => {
    const page = await openConsole(world, browser, ann, DESK);
    const id = await hold(agent);
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await look(page, id);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await approve(page);
    await says(page, FIRST);
    await page.until(
      `document.querySelector('${card(id)} .approvers')?.innerText.includes(${JSON.stringify(ann.email)})`,
    );
    expect(await page.value(`document.querySelector('${card(id)}').dataset.state`)).toBe('waiting');
    expect(await page.value(`document.querySelector('${card(id)} .decide .approve') === null`)).toBe(true);
    await organisation.approve(id);
    await page.until(`document.querySelector('${card(id)}')?.dataset.state !== 'waiting'`);
    expect(complaintsOf(page)).toEqual([]);
  });
});
