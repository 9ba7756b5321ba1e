/** Accessibility of the approval page, the sign-in page and the passkeys page: axe, phones of 360 and 320 pixels, light and dark. */
import { beforeAll, expect, test } from 'vitest';
import { axeFindings, expectAccessible, overflowing } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { signInByLink } from '../world/browser/console.ts';
import { hold, linkOf, lookAgain, openHeld, picture, signOut } from '../world/browser/held-page.ts';
import { DAY_MS } from '../world/times.ts';
import { givenWorld, shared } from '../world/world.ts';

const LONG = {
  endpoint: `/items?${'subject='.padEnd(300, 'x')}`,
  data: {
    title: 'Refund'.repeat(40),
    to: [
      'ann@acme.example',
      `${'b'.repeat(200)}@аcme.example`,
      ...Array.from({ length: 20 }, (_, n) => `n${n}@acme.example`),
    ],
    text: 'One\n\n\n\n\ntwo\u202e\n'.repeat(40),
    [`member-${'n'.repeat(120)}`]: { deep: { deeper: [1, 2, { deepest: 'x'.repeat(400) }] } },
  },
  headers: { 'X-Request-Source': 's'.repeat(200) },
  reason: `Because ${'of this '.repeat(80)}`,
};

describeInChromium(
  'accessible pages',
  () => {
    const world = givenWorld();
    const organisation = shared(() =>
      world.demoOrganisation({ manifest: { recipients: { 'POST /items': ['/to/*'] } } }),
    );
    const agent = shared(() => organisation.agent({ name: 'support-triage-of-a-long-name-without-any-space-in-it' }));
    const page = shared(async () => await (await startBrowser()).page({ width: 360, height: 740 }));
    beforeAll(() => page.authenticator());
    /** Checks the page as it is now, and takes a picture of it. */
    const holds = async (name: string) => {
      await expectAccessible(page, name);
      if (process.env.PICTURES)
        for (const [width, height] of [
          [360, 740],
          [320, 568],
          [1280, 800],
        ] as const)
          for (const scheme of ['light', 'dark'] as const) {
            await page.resize({ width, height }, width < 400 ? 'phone' : 'window');
            await page.prefer(scheme);
            await picture(page, `accessible/${name}-${width}-${scheme}`);
          }
      await page.resize({ width: 360, height: 740 }, 'phone');
      await page.prefer('light');
    };

    test('the checks detect violations', async () => {
      await page.open(`${world.running.baseUrl}/console/sign-in`);
      await page.until(`document.querySelector('#by-passkey') !== null`);
      await page.value(`(() => {
        const wide = document.createElement('div');
        wide.innerHTML = '<h5>Lost</h5><button></button><p>pale</p>';
        wide.lastChild.style.color = '#aaa';
        wide.style.width = '700px';
        document.querySelector('.card').append(wide);
      })()`);
      const found = (await axeFindings(page)).map((one) => one.split(':')[0]);
      expect(found).toEqual(expect.arrayContaining(['button-name', 'color-contrast', 'heading-order']));
      expect((await overflowing(page))[0]).toMatch(/^html \d+ > 360$/);
    });

    test('the sign-in page: a passkey first; and a link that was used', async () => {
      await page.open(`${world.running.baseUrl}/console/sign-in`);
      await page.until(`document.querySelector('#by-passkey') !== null`);
      expect(await page.value(`document.querySelector('button').id`)).toBe('by-passkey');
      await holds('sign-in');
      await page.click('details summary');
      await holds('sign-in-details');
      await page.open(`${world.running.baseUrl}/console/sign-in#sgn_nothing`);
      await page.until(`document.querySelector('#notice .notice') !== null`);
      await holds('sign-in-failed');
    });

    test('the approval page, for a stranger: short and long', async () => {
      await openHeld(page, world, await hold(agent, { data: { title: 'Cup', amount: 45 }, reason: 'It broke.' }));
      await holds('waiting');
      await page.click('.details summary');
      await holds('waiting-details');
      await openHeld(page, world, await hold(agent, LONG));
      await holds('waiting-long');
      await page.click('.recipients + button');
      await holds('waiting-long-recipients');
      await openHeld(page, world, await hold(agent, { data: { text: 'x'.repeat(20_000) } }));
      // axe skips what the buttons lie on.
      await page.value(`document.querySelector('.folded').scrollIntoView({ block: 'center' })`);
      expect(await axeFindings(page)).toEqual([]);
    });

    test('the first screen of a phone shows what is needed to decide, and the buttons do not cover it', async () => {
      for (const size of [
        { width: 360, height: 740 },
        { width: 320, height: 568 },
      ]) {
        await page.resize(size, 'phone');
        await openHeld(page, world, await hold(agent, { data: { title: 'Cup', amount: 45 }, reason: 'It broke.' }));
        const { body, bar } = await page.value<{ body: number; bar: number }>(`({
          body: document.querySelector('.tree .member').getBoundingClientRect().bottom,
          bar: document.querySelector('.decide').getBoundingClientRect().top,
        })`);
        expect(body, `${size.width}`).toBeLessThan(bar);
      }
      await page.resize({ width: 360, height: 740 }, 'phone');
    });

    test('settled: denied, refused by the platform, too late, missing, changed, altered', async () => {
      const denied = await hold(agent);
      await openHeld(page, world, denied);
      await organisation.deny(denied, { note: 'no' });
      await lookAgain(page);
      await page.until(`document.querySelector('.outcome') !== null`);
      await holds('denied');
      world.upstream.answer = (_request, response) => {
        response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"No such item"}');
      };
      const refused = await hold(agent, LONG);
      await openHeld(page, world, refused);
      await organisation.approve(refused);
      await lookAgain(page);
      await page.until(`document.querySelector('.outcome')?.innerText.includes('404')`);
      await holds('refused-by-platform');
      await page.open(linkOf(world, 'nothing'));
      await page.until(`document.body.innerText.includes('There is no such request')`);
      await holds('missing');
      const changed = await hold(agent);
      await openHeld(page, world, changed);
      await world.db
        .updateTable('approvals')
        .set({ request_hash: 'f'.repeat(64) })
        .where('id', '=', changed)
        .execute();
      await lookAgain(page);
      await page.until(`document.body.innerText.includes('has changed since')`);
      await holds('changed');
      const altered = await hold(agent);
      await world.db
        .updateTable('approvals')
        .set({ action: Buffer.alloc(64) })
        .where('id', '=', altered)
        .execute();
      await openHeld(page, world, altered);
      await holds('altered');
      const late = await hold(agent);
      world.clock.skewMs = DAY_MS + 1_000;
      await page.open(linkOf(world, late));
      await page.until(`document.querySelector('.outcome') !== null`);
      await holds('too-late');
      world.clock.skewMs = 0;
    });

    test('signed in: by click, with a confirmation for both decisions; then with a passkey; the outcome; a viewer', async () => {
      await signInByLink(page, world, organisation.owner);
      await openHeld(page, world, await hold(agent, LONG));
      await page.until(`document.querySelector('.offer') !== null`);
      await holds('signed-in');
      await page.click('.deny');
      await page.until(`document.querySelector('dialog[open]') !== null`);
      await holds('confirm-deny');
      await page.press('Escape');
      await openHeld(page, world, await hold(agent, { data: { title: 'Cup', amount: 45 } }));
      await page.click('.approve');
      await page.until(`document.querySelector('dialog[open]') !== null`);
      await holds('confirm-approve');
      await page.press('Escape');
      await page.click('.offer button');
      await page.until(`document.querySelector('.choices .passkey') !== null`);
      await holds('signed-in-passkey');
      await page.click('.deny');
      await page.until(`document.querySelector('.outcome .next') !== null`);
      await holds('denied-next');
      await signOut(page);
      await signInByLink(page, world, await organisation.addOwner('viewer'));
      await openHeld(page, world, await hold(agent));
      await page.until(`document.querySelector('.said').innerText.includes('viewer')`);
      await holds('viewer');
    });

    test('the passkeys page: one, a disabled one, one that cannot sign in, and the confirmation before removing', async () => {
      await signInByLink(page, world, organisation.owner);
      await page.open(`${world.running.baseUrl}/console/passkeys`);
      await page.until(`document.querySelector('#passkeys') !== null`);
      await holds('passkeys');
      await world.db.updateTable('passkeys').set({ discoverable: 0 }).execute();
      await page.value('location.reload()');
      await page.until(`document.querySelector('#passkeys')?.innerText.includes('cannot sign in')`);
      await holds('passkeys-not-discoverable');
      await world.db.updateTable('passkeys').set({ status: 'disabled' }).execute();
      await page.value('location.reload()');
      await page.until(`document.querySelector('#passkeys .badge[data-kind=bad]') !== null`);
      await holds('passkeys-disabled');
      await page.click('#passkeys .danger');
      await page.until(`document.querySelector('dialog[open]') !== null`);
      await holds('passkeys-remove');
    });
  },
  120_000,
);
