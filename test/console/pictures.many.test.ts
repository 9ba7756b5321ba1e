/** Screenshots of an inbox of thirty calls, on a desktop and on phones, light and dark; and the one in the documentation. */
import { beforeAll, expect, test } from 'vitest';
import { SANDBOX_MANIFEST } from '../../lab/sandbox.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { openConsole } from '../world/browser/console.ts';
import { picture } from '../world/browser/held-page.ts';
import { givenWorld, shared } from '../world/world.ts';

const SCOPES = Object.keys(SANDBOX_MANIFEST.scopes);
const RULES = [{ name: 'writes-wait', effect: 'require_approval', scopes: ['*:*'] }];
const SIZES = [
  ['320', { width: 320, height: 640 }, 'phone'],
  ['360', { width: 360, height: 740 }, 'phone'],
  ['1280', { width: 1280, height: 800 }, 'window'],
] as const;

describeInChromium(
  'pictures of an inbox of thirty calls',
  () => {
    const world = givenWorld();
    const organisation = shared(() => world.organisation({ name: 'Acme' }));
    const browser = shared(() => startBrowser());
    const call = async (agent: TestAgent, request: object) => {
      await expectStatus(202, agent.act({ platform: 'sandbox', method: 'POST', ...request }));
    };
    beforeAll(async () => {
      await organisation.platform({ id: 'sandbox', manifest: SANDBOX_MANIFEST });
      const policy = await organisation.policy(RULES, 'careful');
      const grants = { sandbox: { scopeList: SCOPES } };
      const support = await organisation.agent({ name: 'support', policy, grants });
      const release = await organisation.agent({ name: 'release-bot', policy, grants });
      for (let at = 0; at < 24; at++)
        await call(support, {
          endpoint: '/refunds',
          scope: 'sandbox:refunds.create',
          data: { payment: `pay_${20_931 + at}`, amount: 35_000 + at * 35_000, currency: 'EUR' },
          reason: 'The parcel arrived broken; the customer sent a photo.',
        });
      await call(support, {
        endpoint: '/mail',
        scope: 'sandbox:mail.send',
        data: { to: ['jo@customer.example'], subject: 'Your parcel', text: 'Hello Jo,\n\nthe refund is on its way.' },
        reason: 'Answer to ticket 4711.',
      });
      for (let at = 1; at <= 5; at++)
        await call(release, {
          endpoint: '/issues',
          scope: 'sandbox:issues.write',
          data: { title: `Release 2.${at}: check the notes` },
          reason: 'The release is out.',
        });
    });
    const take = async (page: Page, name: string) => {
      for (const scheme of ['light', 'dark'] as const) {
        await page.prefer(scheme);
        await picture(page, `many-${name}-${scheme}`);
      }
      await page.prefer('light');
    };

    test.each(SIZES)('at %s', async (label, size, as) => {
      const page = await openConsole(world, browser, organisation.owner, size);
      await page.resize(size, as);
      await page.until(`document.querySelectorAll('.group').length === 2`);
      await take(page, label);
      await page.click('.group .pick input');
      await page.click('.group .opener');
      await page.until(`document.querySelector('.group .card') !== null`);
      await take(page, `selected-${label}`);
      for (const what of ['approve', 'deny']) {
        await page.click(`#${what}-selected`);
        await page.until(`document.querySelector('dialog .several') !== null`);
        await take(page, `${what}-${label}`);
        if (what === 'approve') {
          await page.click('dialog .several summary');
          await page.until(`document.querySelector('dialog .request-view') !== null`);
          await take(page, `approve-open-${label}`);
        }
        await page.press('Escape');
        await page.until(`document.querySelector('dialog') === null`);
      }
      expect(page.complaints).toEqual([]);
      await page.close();
    });

    test('for the documentation', async () => {
      const page = await openConsole(world, browser, organisation.owner);
      await page.until(`document.querySelectorAll('.group').length === 2`);
      await page.click('.card .opener');
      await page.until(`document.querySelector('.decide') !== null`);
      await page.value('document.activeElement.blur()');
      await picture(page, `${import.meta.dirname}/../../docs/images/inbox`);
    });
  },
  120_000,
);
