/** An owner's passkeys page in a real browser: adding, renaming, removing, and the explanation for a disabled passkey. */
import { beforeAll, expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { card, look, says, signInByLink } from '../world/browser/console.ts';
import {
  complaintsOf,
  DESK,
  hold,
  openSignInLink,
  PHONE,
  pictures,
  signOut,
  text,
} from '../world/browser/held-page.ts';
import { givenWorld, shared } from '../world/world.ts';

describeInChromium('the passkeys page', () => {
  const at = () => `${world.running.baseUrl}/console/passkeys`;
  const listed = () =>
    page.value<string[]>(`[...document.querySelectorAll('#passkeys strong')].map((name) => name.innerText)`);
  const inStore = async () => (await organisation.ask('GET', '/owner/passkeys')).body.passkeys;

  const world = givenWorld();
  const organisation = shared(() => world.organisation());
  const page = shared(async () => await (await startBrowser()).page(PHONE));
  beforeAll(() => page.resize(PHONE, 'phone'));
  const authenticator = shared(() => page.authenticator());

  test('without a session it redirects to sign-in, and returns', async () => {
    await page.open(at());
    await page.until(`location.pathname === '/console/sign-in'`);
    await openSignInLink(page, world, organisation.owner);
    await page.until(`location.pathname === '/console/passkeys' && document.querySelector('.enrol') !== null`);
    expect(await text(page, 'main')).toContain('No passkeys yet');
    await pictures(page, 'passkeys-none');
  });

  test('a name that is refused is refused before the device makes a passkey, which nobody could use', async () => {
    await page.value(`document.querySelector('#device').select()`);
    await page.type('evil\u202e');
    await page.click('.enrol button');
    await page.until(`document.querySelector('.enrol .notice') !== null`);
    expect(await text(page, '.enrol .notice')).toContain('must not contain control or direction characters');
    expect(await authenticator.credentials()).toEqual([]);
    await page.open(at());
    await page.until(`document.querySelector('.enrol') !== null`);
  });

  test('a device is added with the suggested name', async () => {
    const suggested = await page.value<string>(`document.querySelector('#device').value`);
    expect(suggested).toMatch(/^(Chrome on )?[A-Z][\w ]+$/);
    await page.click('.enrol button');
    await page.until(`document.querySelector('#passkeys') !== null`);
    expect(await listed()).toEqual([suggested]);
    expect(await authenticator.credentials()).toHaveLength(1);
    expect(await text(page, '#passkeys')).toMatch(/Added .*\d{4}\. Never used\./);
    expect((await inStore())[0]).toMatchObject({ device_name: suggested, status: 'active' });
    // The next suggestion is distinct.
    expect(await page.value(`document.querySelector('#device').value`)).toBe(`${suggested} 2`);
  });

  test('a passkey can approve right after it was added, in the inbox, too', async () => {
    await organisation.platform();
    const agent = await organisation.agent();
    const id = await hold(agent);
    await page.open(`${world.running.baseUrl}/console`);
    await look(page, id);
    await page.until(`document.querySelector('.passkey:enabled') !== null`);
    // On a phone, too, approving is on the left and denying on the right, each way in one row.
    const places = await page.value<number[][]>(`['.approve', '.passkey', '.deny', '.deny-passkey'].map((one) => {
        const { left, top } = document.querySelector('.decide ' + one).getBoundingClientRect();
        return [Math.round(left), Math.round(top)];
      })`);
    const [approve, byKey, deny, denyByKey] = places as [number[], number[], number[], number[]];
    expect([byKey[0], denyByKey[0]]).toEqual([approve[0], deny[0]]);
    expect([deny[1], denyByKey[1]]).toEqual([approve[1], byKey[1]]);
    expect(deny[0]).toBeGreaterThan(approve[0]!);
    await page.click('.passkey');
    await says(page, 'and made: status 200');
    const { how, decided_by } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect([how, decided_by]).toEqual(['passkey', organisation.owner.id]);
    const other = await hold(agent);
    await page.until(`document.querySelector('${card(other)}') !== null`);
    await look(page, other);
    await page.click('.deny-passkey');
    await page.click('.chip input[value="Not now"]');
    expect(await text(page, 'dialog #deny')).toBe('Deny with passkey');
    await page.click('dialog #deny');
    await says(page, 'Denied by');
    expect((await organisation.ask('GET', `/owner/approvals/${other}`)).body).toMatchObject({
      status: 'denied',
      how: 'passkey',
      note: 'Not now',
    });
    await page.open(at());
    await page.until(`document.querySelector('#passkeys')?.innerText.includes('Last used')`);
  });

  test('adding the same device again: the browser refuses, and the page says why', async () => {
    await page.click('.enrol button');
    await page.until(
      `document.querySelector('.enrol .notice').innerText.includes('has a passkey for this broker already')`,
    );
    expect(await inStore()).toHaveLength(1);
  });

  test('after cancelling the page says that nothing was changed', async () => {
    const other = await (await startBrowser()).page(PHONE);
    await signInByLink(other, world, organisation.owner);
    await other.open(at());
    await other.until(`document.querySelector('.enrol') !== null`);
    // The browser's error after a cancellation (WebAuthn section 5.1.3).
    await other.value(`navigator.credentials.create = () => Promise.reject(new DOMException('no', 'NotAllowedError'))`);
    await other.click('.enrol button');
    await other.until(`document.querySelector('.enrol .notice').innerText.includes('you cancelled')`);
    expect(await other.value(`document.querySelector('.enrol button').disabled`)).toBe(false);
  });

  test('a passkey is renamed by keyboard alone; invisible characters in a name are refused', async () => {
    await page.resize(DESK);
    await page.value(`document.querySelector('#passkeys .rename').focus()`);
    await page.press('Enter');
    await page.until(`document.querySelector('dialog[open] input') === document.activeElement`);
    await page.press('Control+a');
    await page.type('Ann’s phone');
    await page.press('Enter');
    await page.until(`document.querySelector('#passkeys strong').innerText === 'Ann’s phone'`);
    expect((await inStore())[0].device_name).toBe('Ann’s phone');
    expect(await text(page, '#said')).toContain('It is called “Ann’s phone” now.');
    await page.click('#passkeys .rename');
    await page.until(`document.querySelector('dialog[open] input') === document.activeElement`);
    await page.press('Control+a');
    await page.type('evil\u202e');
    await page.press('Enter');
    await page.until(`document.querySelector('dialog .notice') !== null`);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect((await inStore())[0].device_name).toBe('Ann’s phone');
    await page.resize(PHONE, 'phone');
  });

  test('a passkey that was disabled for its counter says so', async () => {
    await world.db.updateTable('passkeys').set({ status: 'disabled', synced: 1, last_used_at: Date.now() }).execute();
    await page.value('location.reload()');
    await page.until(`document.querySelector('#passkeys .badge[data-kind=bad]') !== null`);
    const shown = await text(page, '#passkeys');
    expect(shown).toMatch(/Disabled.*Synced.*Last used .*\d{4}.*which happens if somebody copied it/s);
    await pictures(page, 'passkeys');
  });

  test('a passkey is removed after a confirmation, and not by Escape', async () => {
    await page.click('#passkeys .danger');
    await page.until(`document.querySelector('dialog[open]') !== null`);
    await pictures(page, 'passkeys-remove');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect(await inStore()).toHaveLength(1);
    await page.click('#passkeys .danger');
    await page.click('dialog[open] .danger');
    await page.until(`document.body.innerText.includes('No passkeys yet')`);
    expect(await inStore()).toEqual([]);
    expect(await text(page, '#said')).toContain('is no longer accepted');
  });

  test('a viewer can read the page and sees which role is needed', async () => {
    await signOut(page);
    await signInByLink(page, world, await organisation.addOwner('viewer'));
    await page.open(at());
    await page.until(`document.body.innerText.includes('Your role is viewer')`);
    expect(await page.value(`document.querySelector('.enrol') === null`)).toBe(true);
  });

  test('a browser without passkeys shows what to do', async () => {
    await signOut(page);
    await signInByLink(page, world, organisation.owner);
    await page.open(at().replace('//localhost:', '//127.0.0.1:'));
    await page.until(`location.pathname === '/console/sign-in'`);
    await page.open(at());
    await page.until(`document.querySelector('.enrol') !== null`);
    await page.value(`import('/console/passkeys/ceremony.js').then(({ withoutPasskeys }) => {
      delete globalThis.PublicKeyCredential;
      globalThis.said = withoutPasskeys();
    })`);
    expect(await page.value('said')).toContain('This browser has no passkeys');
  });

  test.each([
    [
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Version/18.1 Mobile/15E148 Safari/604.1',
      'iPhone',
    ],
    ['Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36', 'Android phone'],
    [
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.1 Safari/605.1.15',
      'Safari on Mac',
    ],
    [
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0',
      'Edge on Windows',
    ],
    ['Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0', 'Firefox on Linux'],
    ['something else', 'This device'],
  ])('user agent %s is suggested as %s', async (agent, name) => {
    const called = await page.value(
      `import('/console/passkeys/ceremony.js').then(({ suggestedName }) => suggestedName(${JSON.stringify(agent)}))`,
    );
    expect(called).toBe(name);
  });

  test('at 360 px nothing is wider than the window, and no page violated its Content-Security-Policy', async () => {
    await page.resize({ width: 360, height: 640 }, 'phone');
    expect(await page.value('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    expect(complaintsOf(page).filter((complaint) => !/status of 400/.test(complaint))).toEqual([]);
  });
});
