/** Denying and approving by passkey on the approval page: from the link, on a phone of 360 pixels. */
import { beforeAll, expect, test } from 'vitest';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { Authenticator } from '../world/browser/authenticator.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { signInByLink } from '../world/browser/console.ts';
import { complaintsOf, hold, linkOf, openHeld, signOut, text } from '../world/browser/held-page.ts';
import { givenWorld, shared } from '../world/world.ts';

const PHONE = { width: 360, height: 740 };

describeInChromium('deciding by passkey on the approval page', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  /** A person without a session, whose phone has their passkey. */
  async function withPhone(owner: OwnerTable, options?: object): Promise<[Page, Authenticator]> {
    const page = await browser.page(PHONE);
    await page.resize(PHONE, 'phone');
    const device = await page.authenticator(options);
    await signInByLink(page, world, owner);
    await page.open(`${world.running.baseUrl}/console/passkeys`);
    await page.click('.enrol button');
    await page.until(`document.querySelector('#passkeys') !== null`);
    await signOut(page);
    return [page, device];
  }
  const approver = shared(() => organisation.addOwner('approver'));
  let page: Page;
  let device: Authenticator;
  beforeAll(async () => {
    [page, device] = await withPhone(approver);
  });
  const decided = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
  const becomes = (what: string, on = page) =>
    on.until(`document.querySelector('.outcome h1')?.innerText === ${JSON.stringify(what)}`);
  /** Denies all pending calls, so that each test begins with an empty inbox. */
  const clear = () => organisation.ask('POST', '/owner/approvals/deny', { agent: agent.agentId });

  test('an approver who does not own the agent denies from the link: a reason, one touch, no session', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    expect(await page.value(`document.cookie`)).toBe('');
    await page.click('#note');
    await page.type('Not on a Friday');
    await page.click('.deny');
    await becomes('Denied');
    expect(await decided(id)).toMatchObject({
      status: 'denied',
      how: 'passkey',
      decided_by: approver.id,
      note: 'Not on a Friday',
    });
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({ note: 'Not on a Friday' });
    const { status } = await page.value<{ status: number }>(`fetch('/owner/me').then(({ status }) => ({ status }))`);
    expect(status).toBe(401);
  });

  test('the same approver approves from the link; the outcome quotes the platform, and links to the next call', async () => {
    await clear();
    world.upstream.answer = (_request, response) => {
      response
        .writeHead(422, { 'content-type': 'application/json' })
        .end('{"message":"Title is <b>too long</b>\\u202e","errors":[]}');
    };
    const id = await hold(agent);
    const others = [await hold(agent), await hold(agent)];
    await openHeld(page, world, id);
    await page.click('.approve');
    await becomes('Approved');
    const shown = await text(page, '.outcome');
    expect(shown).toContain('the platform refused it: status 422');
    expect(shown).toContain('The platform says:');
    expect(shown).toContain('Title is <b>too long</b>⟦U+202E⟧');
    expect(await text(page, '.next')).toBe('Next one (2 wait)');
    await page.click('.next');
    await page.until(`location.pathname === '/approve/${others[0]}' && document.querySelector('.deny') !== null`);
    await page.click('.deny');
    await becomes('Denied');
    expect(await text(page, '.next')).toBe('Next one (1 waits)');
    await page.click('.next');
    await page.until(`location.pathname === '/approve/${others[1]}' && document.querySelector('.deny') !== null`);
    await page.click('.deny');
    await page.until(`document.querySelector('.outcome')?.innerText.includes('No other call waits')`);
  });

  test('two people concurrently: the second sees who was first', async () => {
    const [colleague] = await withPhone(organisation.owner);
    const id = await hold(agent);
    for (const one of [page, colleague]) {
      await openHeld(one, world, id);
      // Neither page polls by itself.
      await one.value(`Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })`);
    }
    await page.click('.deny');
    await becomes('Denied');
    await colleague.click('.approve');
    await becomes('Denied already', colleague);
    // A settled call starts no ceremony, and without an assertion it is not shown who decided.
    expect(await text(colleague, '.outcome')).not.toContain(approver.email);
    const another = await hold(agent);
    for (const one of [page, colleague]) await openHeld(one, world, another);
    await colleague.value(
      `Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })`,
    );
    // The colleague's device is still prompting when the other decision is made.
    await colleague.value(`(() => {
        const real = navigator.credentials.get.bind(navigator.credentials);
        navigator.credentials.get = async (options) => {
          const made = await real(options);
          await new Promise((go) => { globalThis.go = go; });
          return made;
        };
      })()`);
    await colleague.click('.approve');
    await colleague.until(`globalThis.go !== undefined`);
    await page.click('.deny');
    await becomes('Denied');
    await colleague.value(`globalThis.go()`);
    await becomes('Denied already', colleague);
    expect(await text(colleague, '.outcome')).toContain(`${approver.email} was first.`);
  });

  test('for a signed-in owner with a passkey it is offered first, then a click; the receipt names the passkey', async () => {
    await signInByLink(page, world, approver);
    const id = await hold(agent);
    await openHeld(page, world, id);
    await page.until(`document.querySelector('.choices')?.innerText === 'Approve with passkey\\nDeny with passkey'`);
    await page.click('.choose');
    await page.until(`document.querySelector('.choices').innerText === 'Approve…\\nDeny…'`);
    await page.click('.choose');
    await page.click('.deny.passkey');
    await becomes('Denied');
    expect(await decided(id)).toMatchObject({ how: 'passkey', decided_by: approver.id });
    await signOut(page);
  });

  test('cancelling the prompt decides nothing, and is reported; the note stays', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    await page.click('#note');
    await page.type('so');
    await page.value(`navigator.credentials.get = () => Promise.reject(new DOMException('no', 'NotAllowedError'))`);
    await page.click('.deny');
    await page.until(`document.querySelector('.said').innerText.includes('Nothing was decided; try again')`);
    expect(await page.value(`document.querySelector('#note').value`)).toBe('so');
    expect((await decided(id)).status).toBe('pending');
  });

  test('a non-discoverable passkey of the agent’s owner can still approve', async () => {
    await world.db.deleteFrom('passkeys').where('owner_id', '=', organisation.owner.id).execute();
    const [old, key] = await withPhone(organisation.owner);
    const [credential] = await key.credentials();
    await key.removeCredential(credential!.credentialId);
    const { userHandle: _, ...stored } = credential!;
    await key.addCredential({ ...stored, isResidentCredential: false });
    await world.db
      .updateTable('passkeys')
      .set({ discoverable: 0 })
      .where('owner_id', '=', organisation.owner.id)
      .execute();
    const id = await hold(agent);
    await openHeld(old, world, id);
    await old.click('.approve');
    await old.until(`document.querySelector('.older') !== null`);
    await old.click('.older');
    await becomes('Approved', old);
    expect(await decided(id)).toMatchObject({ status: 'approved', how: 'passkey' });
  });

  test('usable by keyboard alone, with the note: Approve before Deny, then the other ways', async () => {
    const id = await hold(agent);
    await page.resize({ width: 1280, height: 800 });
    await openHeld(page, world, id);
    const order: string[] = [];
    for (let n = 0; n < 25 && order.at(-1) !== 'deny'; n++) {
      await page.press('Tab');
      const name = await page.value<string>(`document.activeElement.id || document.activeElement.classList[0] || ''`);
      order.push(name);
      if (name === 'note') await page.type('by keys');
    }
    expect(order.slice(-3)).toEqual(['note', 'approve', 'deny']);
    await page.press('Enter');
    await becomes('Denied');
    expect(await decided(id)).toMatchObject({ note: 'by keys', how: 'passkey' });
    expect(await page.value('document.activeElement.tagName')).toBe('H1');
    await page.resize(PHONE, 'phone');
  });

  test('when the shown request is outdated, nothing is decided, and the page says that it has changed', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    await page.value(`Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })`);
    await world.db
      .updateTable('approvals')
      .set({ request_hash: 'f'.repeat(64) })
      .where('id', '=', id)
      .execute();
    await page.click('.deny');
    await page.until(`document.body.innerText.includes('has changed since you opened it')`);
    expect((await decided(id)).status).toBe('pending');
  });

  test('a passkey whose counter decreased is refused with an explanation, and disabled', async () => {
    const id = await hold(agent);
    const [credential] = await device.credentials();
    await device.removeCredential(credential!.credentialId);
    await device.addCredential({ ...credential!, signCount: 0 });
    await page.open(linkOf(world, id));
    await page.click('.deny');
    await page.until(`document.querySelector('.said').innerText.includes('its counter went back')`);
    expect((await decided(id)).status).toBe('pending');
  });

  test('no page violated its Content-Security-Policy', () => {
    expect(complaintsOf(page).filter((one) => !/status of 400/.test(one))).toEqual([]);
  });
});
