/** Our options in a real browser, and its responses at our routes: Chromium with software authenticators. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RECENT_SIGN_IN_SECONDS } from '../../broker/auth/recent-sign-in.ts';
import { signInLink } from '../../broker/auth/sign-in-link.ts';
import type { Authenticator } from '../world/browser/authenticator.ts';
import { describeInChromium, openPage } from '../world/browser/chromium.ts';
import { signOut } from '../world/browser/held-page.ts';
import { evidenceOf } from '../world/evidence.ts';
import { fresh, givenWorld, shared, WRITE } from '../world/world.ts';

/** Runs in the page: calls our routes with the library that our pages use. */
const CEREMONIES = `(async () => {
  const { startRegistration, startAuthentication } = await import('/console/vendor/simplewebauthn-browser.js');
  const post = async (step, body) => {
    const answer = await fetch('/v1/approvals/passkeys/' + step, {
      method: 'POST',
      headers: { 'X-Svc-Csrf': '1', ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  };
  const refusedHere = ({ name, message }) => ({ status: 0, body: { error: name, detail: message } });
  window.enrol = async (device_name) => {
    const begun = await post('register/begin');
    if (begun.status !== 200) return begun;
    try {
      return await post('register/finish', { response: await startRegistration({ optionsJSON: begun.body }), device_name });
    } catch (error) {
      return refusedHere(error);
    }
  };
  window.approve = async (approval_id) => {
    const begun = await post('sign/begin', { approval_id });
    if (begun.status !== 200) return begun;
    try {
      return await post('sign/finish', { response: await startAuthentication({ optionsJSON: begun.body }) });
    } catch (error) {
      return refusedHere(error);
    }
  };
  return true;
})()`;

describeInChromium('passkeys in a browser', () => {
  let device: Authenticator | undefined;
  const world = givenWorld();
  const page = shared(() => openPage({ width: 800, height: 600 }));
  afterEach(async () => {
    await device?.remove();
    device = undefined;
  });
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());
  beforeEach(async () => {
    // Where the owner of the previous test is still signed in, the page of a link asks first.
    await signOut(page);
    await page.open((await signInLink(world.running.broker, organisation.owner)).url);
    await page.until(`location.pathname === '/console'`);
    await page.value(CEREMONIES);
  });

  type Outcome = { status: number; body: Record<string, unknown> };
  const enrol = (name = 'Phone') => page.value<Outcome>(`enrol(${JSON.stringify(name)})`);
  const approve = (id: string) => page.value<Outcome>(`approve(${JSON.stringify(id)})`);
  const own = async () => (await organisation.ask('GET', '/owner/passkeys')).body.passkeys;

  test.each<[string, object, { user_verified: boolean; transport: string; synced: boolean }]>([
    ['a laptop', {}, { user_verified: true, transport: 'internal', synced: false }],
    [
      'a phone whose passkeys are synced',
      { transport: 'hybrid', defaultBackupEligibility: true, defaultBackupState: true },
      { user_verified: true, transport: 'hybrid', synced: true },
    ],
    [
      'a security key without a PIN',
      { transport: 'usb', hasResidentKey: false, hasUserVerification: false, isUserVerified: false },
      { user_verified: false, transport: 'usb', synced: false },
    ],
    [
      'a U2F security key',
      { protocol: 'u2f', transport: 'usb', hasResidentKey: false, hasUserVerification: false, isUserVerified: false },
      { user_verified: false, transport: 'usb', synced: false },
    ],
  ])('%s is enrolled and approves', async (_what, options, { user_verified, transport, synced }) => {
    device = await page.authenticator(options);
    const enrolled = await enrol();
    expect([enrolled.status, enrolled.body.error]).toEqual([200, undefined]);
    // Further transports depend on the browser's version.
    const transports = expect.arrayContaining([transport]);
    expect(await own()).toMatchObject([{ credential_id: enrolled.body.credential_id, transports, synced }]);
    for (let round = 0; round < 2; round++) {
      const id = await agent.hold(WRITE);
      const approved = await approve(id);
      expect([approved.status, approved.body.status, approved.body.error]).toEqual([200, 'approved', undefined]);
      const { body } = await agent.get(`/v1/approvals/${id}`);
      const { payload } = await evidenceOf(world, agent, body.audit_id);
      expect(payload.approval).toMatchObject({ how: 'passkey', passkey: { user_verified, counter: 'increased' } });
    }
  });

  test('an authenticator refuses to be enrolled twice', async () => {
    device = await page.authenticator();
    expect((await enrol()).status).toBe(200);
    expect((await enrol('Again')).body.error).toBe('InvalidStateError');
    expect(await own()).toHaveLength(1);
  });

  test('AP-11 an older copy of a passkey is detected', async () => {
    device = await page.authenticator();
    await enrol();
    const [copy] = await device.credentials();
    expect((await approve(await agent.hold(WRITE))).status).toBe(200);
    await device.removeCredential(copy!.credentialId);
    await device.addCredential(copy!);
    const id = await agent.hold(WRITE);
    expect(await approve(id)).toMatchObject({ status: 400, body: { error: 'counter_regression' } });
    expect(await own()).toMatchObject([{ status: 'disabled' }]);
    expect(await approve(id)).toMatchObject({ status: 404, body: { error: 'not_found' } });
  });

  test('the console asks for a passkey, or a new sign-in, when the sign-in is older than 10 minutes, and continues', async () => {
    const names = async () =>
      (await own()).map(({ device_name }: { device_name: string }) => device_name).sort() as string[];
    const add = async (name: string) => {
      await page.until(`document.querySelector('#device') !== null`);
      await page.value(`document.querySelector('#device').select()`);
      await page.type(name);
      await page.click('.enrol button[type="submit"]');
    };
    const said = (text: string) => page.until(`document.querySelector('#said')?.innerText.includes('${text}')`);
    device = await page.authenticator();
    await page.open(`${world.running.baseUrl}/console/passkeys`);
    await add('Phone');
    await said('“Phone” can');
    world.clock.skewMs = RECENT_SIGN_IN_SECONDS * 1000 + 60_000;
    // The device is enrolled already: its owner switches devices between the two prompts.
    await page.value(`(() => {
        const create = navigator.credentials.create.bind(navigator.credentials);
        const other = new Promise((taken) => { window.taken = taken; });
        navigator.credentials.create = async (options) => {
          window.creating = true;
          await other;
          return await create(options);
        };
        return true;
      })()`);
    await add('New phone');
    await page.until(`document.querySelector('#reauthenticate')?.innerText.includes('within the last 10 minutes')`);
    expect(await names()).toEqual(['Phone']);
    await page.click('#use-passkey');
    await page.until('window.creating');
    await device.remove();
    device = await page.authenticator();
    await page.value('taken()');
    await said('“New phone” can');
    expect(await names()).toEqual(['New phone', 'Phone']);
    expect(await page.value(`document.querySelector('#reauthenticate')`)).toBe(null);
    const last = '#passkeys li:last-child .danger';
    await page.click(last);
    await page.click('dialog [type="submit"]');
    await page.click('dialog #use-passkey');
    await said('“New phone” is no longer accepted');
    expect(await names()).toEqual(['Phone']);
    // Neither device has a passkey any more, so the owner signs in by a link, and returns to the same page.
    await device.remove();
    device = await page.authenticator();
    await add('Laptop');
    await page.click('#sign-in-again');
    await page.until(`location.pathname === '/console/sign-in' && document.querySelector('#by-passkey') !== null`);
    const { url } = await signInLink(world.running.broker, organisation.owner);
    await page.open(url);
    await page.until(`location.pathname === '/console/passkeys'`);
    await add('Laptop');
    await said('“Laptop” can');
    expect(await names()).toEqual(['Laptop', 'Phone']);
  });

  test('AP-12 an organisation that requires verification requests it, and the browser enforces it', async () => {
    device = await page.authenticator();
    await enrol();
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: true });
    await device.recognises(false);
    const id = await agent.hold(WRITE);
    expect((await approve(id)).body.error).toBe('NotAllowedError');
    await device.recognises(true);
    expect((await approve(id)).status).toBe(200);
  });
});
