/** Screenshots of the console for review, in test-artefacts/: every page, light and dark, on a desktop and on a phone. */
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { githubWorkSentences } from '../../broker/platforms/builtin/sentences/github-work.ts';
import { listOwners } from '../../broker/store/organisations.ts';
import { jsonPost, send, type TestAgent } from '../world/agent.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { approve, DESKTOP, isLive, openConsole, PHONE } from '../world/browser/console.ts';
import { givenWorld, shared } from '../world/world.ts';

const SCOPES = {
  'codehost:contents.read': ['GET /repos/**'],
  'codehost:pulls.write': ['POST /repos/*/*/pulls', 'PUT /repos/*/*/pulls/*/merge'],
  'codehost:issues.write': ['POST /repos/*/*/issues'],
};
const MAIL = { 'mail:read': ['GET /messages', 'GET /messages/*'], 'mail:send': ['POST /messages'] };
const PAYMENTS = { 'payments:read': ['GET /charges'], 'payments:refund': ['POST /refunds'] };
const SAID_OF_MAIL = { 'POST /messages': 'send mail[ to **{recipients}**][: *{/subject}*]' };
const SAID_OF_PAYMENTS = { 'POST /refunds': 'refund **{amount /amount /currency}** of charge {/charge}' };
const RULES = [
  { name: 'reads', effect: 'allow', scopes: ['*:*read'] },
  { name: 'issues', effect: 'allow', scopes: ['codehost:issues.write'] },
  { name: 'merge-needs-a-person', effect: 'require_approval', scopes: ['codehost:pulls.write'] },
  { name: 'mail-leaves-the-house', effect: 'require_approval', scopes: ['mail:send'] },
  { name: 'refunds-wait', effect: 'require_approval', scopes: ['payments:refund'] },
];

describeInChromium('pictures', () => {
  let page: Page;
  const agents: Record<string, TestAgent> = {};

  const act = async (name: string, platform: string, call: Record<string, unknown>) =>
    await agents[name]!.act({ platform, ...call });

  const world = givenWorld();
  const organisation = shared(() => world.organisation({ name: 'Acme' }));
  beforeAll(async () => {
    await organisation.platform({
      id: 'codehost',
      manifest: { scopes: SCOPES, sentences: { ...githubWorkSentences } },
    });
    await organisation.platform({
      id: 'mail',
      manifest: { scopes: MAIL, recipients: { 'POST /messages': ['/to/*'] }, sentences: SAID_OF_MAIL },
    });
    await organisation.platform({ id: 'payments', manifest: { scopes: PAYMENTS, sentences: SAID_OF_PAYMENTS } });
    const policy = await organisation.policy(RULES, 'careful');
    await organisation.policy(RULES.slice(0, 1), 'default');
    const grants = Object.fromEntries(
      Object.entries({ codehost: SCOPES, mail: MAIL, payments: PAYMENTS }).map(([id, scopes]) => [
        id,
        { scopeList: Object.keys(scopes) },
      ]),
    );
    const hour = 3600 * 1000;
    const now = Date.now();
    for (const [name, more] of Object.entries({
      'release-bot': {},
      support: {},
      bookkeeper: {},
      newsletter: { status: 'suspended', status_since: now - 2 * hour, status_detail: 'wrote to the wrong list' },
      'old-importer': { status: 'revoked', status_since: now - 70 * hour },
    }))
      agents[name] = await organisation.agent({
        name,
        policy,
        grants: name === 'bookkeeper' ? { payments: grants.payments! } : grants,
        agent: { ...(more as object), ...('status' in more && { status_cause: 'owner_manual' as const }) },
      });
    const repository = '/repos/acme/shop';
    const ago = (minutes: number) => {
      world.clock.skewMs = -minutes * 60_000;
    };
    ago(190);
    await act('release-bot', 'codehost', { endpoint: repository, method: 'GET', scope: 'codehost:contents.read' });
    await act('release-bot', 'codehost', {
      endpoint: `${repository}/issues`,
      method: 'POST',
      scope: 'codehost:issues.write',
      data: { title: 'Release 2.4' },
    });
    await act('support', 'mail', { endpoint: '/messages', method: 'GET', scope: 'mail:read' });
    await act('support', 'payments', { endpoint: '/charges', method: 'POST', scope: 'payments:read' });
    await act('newsletter', 'mail', { endpoint: '/messages', method: 'GET', scope: 'mail:read' });
    ago(95);
    const held = [
      await act('support', 'payments', {
        endpoint: '/refunds',
        method: 'POST',
        scope: 'payments:refund',
        data: { charge: 'ch_20931', amount: 4900, currency: 'EUR', reason: 'requested_by_customer' },
        reason: 'The parcel arrived broken; the customer sent a photo.',
      }),
      await act('release-bot', 'codehost', {
        endpoint: `${repository}/pulls/481/merge`,
        method: 'PUT',
        scope: 'codehost:pulls.write',
        data: { merge_method: 'squash' },
        reason: 'All checks are green and two people have reviewed it.',
      }),
      await act('support', 'mail', {
        endpoint: '/messages',
        method: 'POST',
        scope: 'mail:send',
        data: { to: ['jo@customer.example'], subject: 'Your parcel', text: 'Hello Jo,\n\nthe refund is on its way.' },
        reason: 'Answer to ticket 4711.',
      }),
    ];
    ago(2);
    for (const { status, text } of held) expect(status, text).toBe(202);
    const asked = await agents.bookkeeper!.post('/v1/access-request', {
      platform: 'mail',
      scope: 'mail:read',
      reason: 'To match invoices with payments.',
    });
    expect(asked.status, asked.text).toBe(202);
    ago(0);
    await organisation.ask('POST', '/owner/owners', { email: 'ann@acme.example', role: 'admin' });
    const owners = await listOwners(world.db, organisation.id);
    const ann = owners.find(({ email }) => email === 'ann@acme.example')!;
    const registering = await send(
      `${world.running.baseUrl}/v1/register`,
      jsonPost({
        owner_id: ann.id,
        agent_name: 'translator',
        agent_description: 'Translates the issues of customers.\nStarted by Jo on the build machine.',
        requested_scopes: [
          { platformId: 'codehost', scopes: ['codehost:contents.read', 'codehost:issues.write', 'codehost:admin'] },
          { platformId: 'mail', scopes: ['mail:read', 'mail:send'] },
          { platformId: 'wiki', scopes: ['wiki:pages.read'] },
        ],
      }),
    );
    expect(registering.status, registering.text).toBe(202);
    page = await openConsole(world, await startBrowser(), ann);
  });

  const take = async (name: string) => {
    for (const scheme of ['light', 'dark'] as const) {
      await page.prefer(scheme);
      // Wait until the colour transition has ended.
      await pause(250);
      await page.screenshot(`console-${name}-${scheme}.png`);
    }
  };
  const openOne = async (at: number) => {
    await page.value(`document.querySelectorAll('.opener')[${at}].click()`);
    await page.until(`document.querySelector('.decide') !== null`);
  };

  test.each([
    ['desktop', DESKTOP, 'window'],
    ['phone', PHONE, 'phone'],
  ] as const)('every page on a %s', { timeout: 360_000 }, async (label, size, as) => {
    await page.resize(size, as);
    const go = async (path: string) => {
      await page.open(world.running.baseUrl + path);
      await isLive(page);
    };
    await go('/console');
    await page.until(`document.querySelectorAll('.card').length === 5`);
    await take(`inbox-${label}`);
    await openOne(1);
    await page.value('document.activeElement.blur()');
    await take(`call-${label}`);
    await page.value(`document.querySelector('.deny').click()`);
    await page.until(`document.querySelector('dialog') !== null`);
    await take(`deny-${label}`);
    await page.press('Escape', 'Escape');
    await openOne(3);
    await take(`access-${label}`);
    await go('/console');
    await openOne(4);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await take(`registration-${label}`);
    await page.value('scrollTo(0, document.body.scrollHeight)');
    await take(`registration-end-${label}`);
    await page.value(`document.querySelector('.deny').click()`);
    await page.until(`document.querySelector('dialog') !== null`);
    await take(`reject-${label}`);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await page.press('a');
    await page.until(`document.querySelector('dialog #approve') !== null`);
    await take(`let-in-${label}`);
    await go('/console/agents');
    await take(`agents-${label}`);
    await page.value(`document.querySelector('#agents .name a').click()`);
    await page.until(`document.querySelector('#grants .row, #grants .none') !== null`);
    await take(`agent-${label}`);
    await go('/console/agents/new');
    await take(`new-agent-${label}`);
    await go('/console/activity');
    await page.value(`document.querySelectorAll('#activity summary')[1].click()`);
    await page.until(`document.querySelector('#activity .facts') !== null`);
    await take(`activity-${label}`);
    await page.value(`document.querySelector('.account summary').click()`);
    await take(`account-${label}`);
    await go('/console/settings');
    await page.until(`document.querySelector('#publish') !== null`);
    await take(`settings-${label}`);
    await go('/console/policies');
    await page.until(`document.querySelectorAll('#policies .row').length > 1`);
    await take(`policies-${label}`);
    await go('/console/policies/careful');
    await page.until(`document.querySelector('#versions .row') !== null`);
    await take(`policy-${label}`);
    await go('/console/policies/careful?edit');
    await page.click('.rule-card:nth-child(2) .rule-opener');
    await take(`policy-edit-${label}`);
    await page.click('.rule-card:nth-child(2) input[value="deny"]');
    await page.click('[data-days="7"]');
    await page.until(`document.querySelector('#tried .counts') !== null`);
    await page.value(`document.querySelector('#try').scrollIntoView({ behavior: 'instant' })`);
    await take(`policy-try-${label}`);
    await page.click('#leave-editor');
    await page.click('#drop-draft');
    for (const path of ['reports', 'clients', 'people', 'passkeys', 'connections']) {
      await go(`/console/${path}`);
      await take(`${path}-${label}`);
    }
    await go('/console/settings');
    await page.until(`document.querySelector('#publish') !== null`);
    await page.click('#publish');
    await page.until(`document.querySelector('dialog') !== null`);
    await take(`publish-${label}`);
    await page.press('Escape');
    await page.open(`${world.running.baseUrl}/console/sign-in`);
    await page.until(`document.querySelector('#by-passkey') !== null`);
    await take(`sign-in-${label}`);
    expect(page.complaints).toEqual([]);
  });

  test('a decided call stays in place; the page shows when the broker is unavailable', {
    timeout: 180_000,
  }, async () => {
    await page.resize(DESKTOP);
    await page.open(`${world.running.baseUrl}/console`);
    await isLive(page);
    await openOne(1);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await approve(page);
    await page.until(`document.querySelectorAll('.card[data-state="over"]').length === 1`);
    await openOne(2);
    await page.click('.deny');
    await page.click('#deny');
    await page.until(`document.querySelectorAll('.card[data-state="over"]').length === 2`);
    await openOne(4);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await page.value(`document.querySelectorAll('.terms input')[1].click()`);
    await approve(page);
    await page.until(`document.querySelectorAll('.card[data-state="over"]').length === 3`);
    await page.value('scrollTo(0, 0)');
    await take('decided-desktop');
    await world.running.stop();
    await page.until(`document.querySelector('#liveness').dataset.live === 'false'`);
    await page.until(`document.querySelector('main').innerText.includes('does not answer')`);
    await take('not-live-desktop');
  });
});
