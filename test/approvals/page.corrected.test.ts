/** A call that is corrected while its approval page is open: only what the person has reviewed can be approved there. */
import { beforeAll, expect, test } from 'vitest';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { signInByLink } from '../world/browser/console.ts';
import {
  complaintsOf,
  hold,
  isDisabled,
  lookAgain,
  openHeld,
  PHONE,
  signOut,
  text,
} from '../world/browser/held-page.ts';
import { givenWorld, shared } from '../world/world.ts';

/** The confirmation repeats six members of the body; the corrected member is not among them. */
const BODY = { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, amount: 500 };

describeInChromium('a call that is corrected while its page is open', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const page: Page = shared(async () => await (await startBrowser()).page(PHONE));
  beforeAll(() => page.resize(PHONE, 'phone'));
  const read = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
  const correct = async (id: string, amount: number) => {
    const { request_hash } = await read(id);
    const change = { request_hash, data: { ...BODY, amount } };
    expect((await organisation.ask('POST', `/owner/approvals/${id}/correct`, change)).status).toBe(200);
  };
  const becomes = (what: string) =>
    page.until(`document.querySelector('.outcome h1')?.innerText === ${JSON.stringify(what)}`);
  const sent = () => JSON.parse(world.upstream.seen.at(-1)!.body).amount;

  test('an open confirmation is withdrawn, and only the reviewed version can be approved', async () => {
    await signInByLink(page, world, organisation.owner);
    const id = await hold(agent, { data: BODY });
    await openHeld(page, world, id);
    await page.click('.decide .approve');
    await page.until(`document.querySelector('dialog #approve') !== null`);
    await correct(id, 5_000);
    await lookAgain(page);
    await page.until(`document.querySelector('.notice[role="alert"]') !== null`);
    expect(await page.value(`document.querySelector('dialog') === null`)).toBe(true);
    expect(await text(page, '.notice[role="alert"]')).toContain('has changed since you opened it');
    expect(await isDisabled(page, '.decide .approve')).toBe(true);
    expect((await read(id)).status).toBe('pending');
    await page.click('.notice[role="alert"] button');
    await page.until(`document.querySelector('.request-view')?.innerText.includes('5000')`);
    await page.click('.decide .approve');
    await page.click('dialog #approve');
    await becomes('Approved');
    expect(sent()).toBe(5_000);
    expect(complaintsOf(page)).toEqual([]);
  });

  test('a passkey approval applies to the reviewed version only', async () => {
    const device = await page.authenticator();
    await page.open(`${world.running.baseUrl}/console/passkeys`);
    await page.click('.enrol button');
    await page.until(`document.querySelector('#passkeys') !== null`);
    await signOut(page);
    const [credential] = await device.credentials();
    await device.removeCredential(credential!.credentialId);
    const { userHandle: _, ...stored } = credential!;
    await device.addCredential({ ...stored, isResidentCredential: false });
    await world.db.updateTable('passkeys').set({ discoverable: 0 }).execute();
    const id = await hold(agent, { data: BODY });
    await openHeld(page, world, id);
    await page.click('.approve');
    await page.until(`document.querySelector('.older') !== null`);
    await correct(id, 6_000);
    // The new version was not reviewed yet: the broker refuses.
    await page.click('.older');
    await page.until(`document.querySelector('.notice[role="alert"]') !== null`);
    expect(await page.value(`document.querySelector('.older') === null`)).toBe(true);
    expect((await read(id)).status).toBe('pending');
    await page.click('.notice[role="alert"] button');
    await page.until(`document.querySelector('.request-view')?.innerText.includes('6000')`);
    await page.click('.approve');
    await page.until(`document.querySelector('.older') !== null`);
    await page.click('.older');
    await becomes('Approved');
    expect(sent()).toBe(6_000);
  });
});
