/** Correcting a held call in the inbox: the correction is shown next to the original request and approved in its corrected form. */
import { expect, test } from 'vitest';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { approve, card, DESKTOP, goTo, openConsole, PHONE, says } from '../world/browser/console.ts';
import { keyboard, mouse } from '../world/browser/input-device.ts';
import { thorough } from '../world/runner/thorough.ts';
import { givenWorld, shared } from '../world/world.ts';

describeInChromium('corrections', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());

  // With the mouse in thorough runs only: inbox.test.ts and many.test.ts use it in the inbox.
  test.each([
    ['the keyboard', keyboard, PHONE] as const,
    ...(thorough ? [['the mouse', mouse, DESKTOP] as const] : []),
  ])('a call is corrected and approved, with %s', async (_hand, input, size) => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent({ name: 'triage' });
    const page = await openConsole(world, browser, organisation.owner, size);
    const { use, fill } = input(page);
    const data = { note: 'refund', amount: 500 };
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data };
    const id = await agent.hold(call);
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await use(`${card(id)} .opener`);
    await page.until(`document.querySelector('${card(id)} .decide') !== null`);
    expect(
      await page.value(
        `document.querySelector('.correct button').getBoundingClientRect().left - document.querySelector('${card(id)}').getBoundingClientRect().left`,
      ),
      'room to the edge',
    ).toBeGreaterThan(8);
    await use('.correct button');
    expect(await page.value(`document.querySelector('#corrected-body').value`)).toBe(
      JSON.stringify(data, undefined, 2),
    );
    await expectAccessible(page, `a correction (${size.width})`, 'dialog');
    await page.screenshot(`correcting-${size.width}.png`);
    for (const [text, words] of [
      ['{"amount": 50', 'JSON'],
      ['[1]', 'The body is an object'],
      ['{"order": 98765432109876543210}', 'would be sent as another number'],
      ['{"amount": 1, "amount": 1000}', '/data/amount: this member name is there twice'],
    ] as const) {
      await fill('#corrected-body', text);
      await use('#save-correction');
      await page.until(`document.querySelector('dialog .wrong')?.innerText.includes(${JSON.stringify(words)})`);
    }
    await fill('#corrected-endpoint', '/admin');
    await fill('#corrected-body', '{"note": "refund", "amount": 50}');
    await use('#save-correction');
    await page.until(`document.querySelector('dialog .wrong')?.innerText.includes('would be refused')`);
    await fill('#corrected-endpoint', '/items');
    await use('#save-correction');
    await page.until(`document.querySelector('dialog') === null`);
    await page.until(`document.querySelector('.was-asked')?.innerText.includes('${organisation.owner.email}')`);
    expect(await page.value(`document.querySelector('.has-body').innerText`)).toMatch(/amount\s+50\b/);
    await use('.was-asked summary');
    expect(await page.value(`document.querySelector('.was-asked').innerText`)).toContain('"amount": 500');
    await page.screenshot(`correction-${size.width}.png`);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await approve(page);
    await says(page, 'and made: status 200');
    expect(JSON.parse(world.upstream.seen.at(-1)!.body)).toEqual({ note: 'refund', amount: 50 });
    // A person who has only the link reads the result.
    expect((await agent.get(`/v1/approvals/${id}`)).body.corrected.data).toEqual({ note: 'refund', amount: 50 });
    await goTo(page, `${world.running.baseUrl}/console/activity`);
    await page.until(`document.querySelector('main').innerText.includes('corrected by ${organisation.owner.email}')`);
    await page.close();
  });

  test('the approval page shows a person who has the link that the call was corrected, and the original request', async () => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent({ name: 'triage' });
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { amount: 500 } };
    const id = await agent.hold(call);
    const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    const page = await browser.page(DESKTOP);
    await page.open(`${world.running.baseUrl}/approve/${id}`);
    await page.until(`document.querySelector('.has-body')?.innerText.includes('500')`);
    const corrected = await organisation.ask('POST', `/owner/approvals/${id}/correct`, {
      request_hash,
      data: { amount: 5 },
    });
    expect(corrected.status, corrected.text).toBe(200);
    // A request that changed while it was displayed cannot be decided.
    await page.until(`document.querySelector('.notice button') !== null`);
    expect(await page.value(`document.querySelector('.approve:enabled')`)).toBeNull();
    await page.click('.notice button');
    await page.until(`document.querySelector('.was-asked')?.innerText.includes('by an owner')`);
    expect(await page.value(`document.querySelector('.has-body').innerText`)).toMatch(/amount\s+5\b/);
    expect(await page.value('document.body.innerText')).not.toContain(organisation.owner.email);
  });
});
