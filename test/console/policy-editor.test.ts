/** The rule editor: text and cards, unsaved changes, roles, hostile texts, many rules, and accessibility. */
import { expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, isLive, openConsole, PHONE, says } from '../world/browser/console.ts';
import { mouse } from '../world/browser/input-device.ts';
import { sized } from '../world/runner/thorough.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

const HOSTILE = 'has(request.body.note) && request.body.note == "<img src=x onerror=alert(1)>\u202e"';
/** The most that a policy may have, in a thorough run; the editor shows fifty at a time. */
const COUNT = sized(120, 500);
/** Where the search finds one rule. */
const ONE = COUNT - 13;
const RULES = [
  { name: 'reads', effect: 'allow', methods: ['GET'] },
  { name: 'odd', effect: 'deny', scopes: ['demo:write', '<b>:*'], when: HOSTILE },
];

describeInChromium('the rule editor in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation({ name: 'acme' }));
  const made = shared(() => organisation.ask('POST', '/owner/policies', { name: 'careful', rules: RULES }));
  const agent = shared(() => organisation.agent({ name: 'triage', policy: made.body.id }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  const go = (path: string, on = page) => goTo(on, world.running.baseUrl + path);
  const there = (selector: string, on = page) =>
    on.until(`document.querySelector(${JSON.stringify(selector)}) !== null`);
  const text = () => page.value<string>(`document.querySelector('#rules-text').value`);
  const rules = async () => (await organisation.ask('GET', '/owner/policies/careful')).body.rules;
  const write = async (words: string) => {
    await page.click('#rules-text');
    await page.press('Control+a');
    await page.type(words);
  };

  test('markup and bidirectional control characters are shown as text, everywhere', async () => {
    await go('/console/policies/careful');
    const said = await page.value<string>(`document.querySelector('#rules').innerText`);
    for (const words of ['<img src=x onerror=alert(1)>⟦U+202E⟧', '<b>:*']) expect(said).toContain(words);
    await page.click('#edit');
    await page.click('[data-rule="1"] .rule-opener');
    await there('.unseen-characters');
    expect(await page.value(`document.querySelector('.unseen-characters').innerText`)).toContain('⟦U+202E⟧');
    expect(await page.value(`document.querySelectorAll('main img, main b').length`)).toBe(0);
    await page.click('#leave-editor');
  });

  test('text and cards convert both ways, and text that is not a valid list of rules stays text', async () => {
    await go('/console/policies/careful?edit');
    for (const form of ['json', 'yaml']) {
      await page.click(`input[value="${form}"]`);
      await page.until(
        `document.querySelector('#rules-text')?.value.startsWith('${form === 'json' ? '[' : '- name'}')`,
      );
    }
    expect(await page.value(`document.querySelector('#save').disabled`), 'nothing has changed').toBe(true);
    await write('rules:\n  - effect: allow\n    methods: [GET\n');
    await there('#text-problem');
    expect(await page.value(`document.querySelector('input[value="cards"]').disabled`)).toBe(true);
    expect(await page.value(`document.querySelector('#save').disabled`)).toBe(true);
    // Invalid text survives a reload, too.
    await page.value('location.reload()');
    await isLive(page);
    await there('#text-problem');
    expect(await text()).toBe('rules:\n  - effect: allow\n    methods: [GET\n');
    await write('rules:\n  - effect: allow\n    methods: GET\n');
    await page.until(`document.querySelector('#text-problem')?.innerText.includes('rules[0].methods')`);
    await write('rules:\n  - { effect: allow, methds: [GET] }\n');
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('#rules-text ~ .wrong')?.innerText.includes('methds')`);
    // The text has changed since it was refused.
    await write('rules:\n  - effect: allow # all\n    methods: [GET]\n  - { effect: deny, metods: [PUT] }\n');
    await page.until(`document.querySelector('#rules-text ~ .wrong') === null`);
    await page.click('input[value="cards"]');
    await page.until(`document.querySelectorAll('.rule-card').length === 2`);
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('[data-rule="1"] .wrong')?.innerText.includes('methods')`);
    await page.click('[data-rule="1"] [data-remove]');
    await page.click('input[value="json"]');
    await page.until(`document.querySelector('#rules-text')?.value.includes('"allow"')`);
    expect(JSON.parse(await text())).toEqual([{ effect: 'allow', methods: ['GET'] }]);
    expect(await rules(), 'nothing is saved by that').toEqual(RULES);
  });

  test('leaving with unsaved changes asks: the person stays, comes back to the kept draft, or discards it', async () => {
    await go('/console/policies/careful?edit');
    await page.click('input[value="json"]');
    await write('[{ "effect": "allow", "methods": ["GET"] }]');
    await page.click('nav a[href="/console/agents"]');
    await page.click('#stay');
    expect(await page.value('location.search')).toBe('?edit');
    await page.click('nav a[href="/console/agents"]');
    await page.click('#keep-draft');
    await page.until(`location.pathname === '/console/agents'`);
    await page.value('history.back()');
    await there('#restored');
    expect(JSON.parse(await text())).toEqual([{ effect: 'allow', methods: ['GET'] }]);
    // The Back button of the browser asks, too.
    await go('/console/policies/careful');
    await page.click('#edit');
    await there('#restored');
    await page.value('history.back()');
    await there('#drop-draft');
    expect(await page.value('location.search')).toBe('?edit');
    await page.click('#drop-draft');
    await page.until(`location.search === ''`);
    await go('/console/policies/careful?edit');
    await there('#cards');
    expect(await page.value(`document.querySelector('#restored')`)).toBe(null);
  });

  test.each(['viewer', 'approver'] as const)(
    'a %s can read and try rules, and reads why they cannot be saved',
    async (role) => {
      const other = await openConsole(world, browser, await organisation.addOwner(role), PHONE);
      for (const call of [READ, WRITE]) await agent.act(call);
      await go('/console/policies', other);
      expect(await other.value(`document.querySelector('#new-policy')`)).toBe(null);
      await go('/console/policies/careful?edit', other);
      await other.click('[data-rule="0"] .rule-opener');
      await other.click('[data-rule="0"] input[value="deny"]');
      await other.click('[data-days="1"]');
      await there('[data-change="allow deny"] a[href^="/console/activity?words="]', other);
      await other.until(`document.querySelector('#why-not').innerText.includes('Your role is ${role}')`);
      expect(await other.value(`document.querySelector('#save').disabled`)).toBe(true);
      expect(other.complaints).toEqual([]);
      await other.close();
    },
  );

  test('guardrails are edited there, too: they need a name, and their approvals may be remembered', async () => {
    await go('/console/policies');
    await page.click('#first-guardrail');
    await page.click('#add-rule');
    await page.click('[data-rule="0"] [data-field="methods"] input[value="DELETE"]');
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('[data-rule="0"] [data-field="name"] .wrong') !== null`);
    await page.click('[data-rule="0"] [data-field="name"] input');
    await page.type('deletes-wait');
    await page.click('[data-rule="0"] [data-field="remember"] input');
    await page.click('#save');
    await page.click('#try-now');
    await page.until(`document.querySelector('#last-try .counts') !== null`);
    await page.click('#save-now');
    await says(page, 'version 1 is in force');
    expect((await organisation.ask('GET', '/owner/guardrails')).body.guardrails).toEqual([
      { name: 'deletes-wait', effect: 'require_approval', methods: ['DELETE'], remember: true },
    ]);
    await go('/console/policies');
    await page.until(`document.querySelector('#guardrails').innerText.includes('DELETE waits')`);
  });

  test('a limit is entered and shown in words; a rule with the effect allow has none', async () => {
    await organisation.ask('POST', '/owner/policies', { name: 'limited', rules: [{ effect: 'allow' }] });
    await go('/console/policies/limited?edit');
    await page.click('#add-rule');
    const card = '[data-rule="1"]';
    await page.click(`${card} [data-field="effect"] input[value="deny"]`);
    await page.click(`${card} [data-field="limit"] input[type="checkbox"]`);
    const { fill, choose } = mouse(page);
    await fill(`${card} [data-field="limit"] input[type="number"]`, '2.5');
    await choose(`${card} [data-field="limit"] select`, 'hour');
    await fill(`${card} [data-field="limit"] input[maxlength="2048"]`, 'request.bdy.amount');
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('${card} [data-field="limit"] .wrong')?.innerText.includes('bdy')`);
    await fill(`${card} [data-field="limit"] input[maxlength="2048"]`, 'request.body.amount');
    await page.click(`${card} [data-field="name"] input`);
    await page.type('money');
    await page.click('#save');
    await page.click('#save-now');
    await says(page, 'version 2 is in force');
    const stored = (await organisation.ask('GET', '/owner/policies/limited')).body.rules;
    const limit = { most: 2.5, per: 'hour', of: 'request.body.amount' };
    expect(stored).toEqual([{ effect: 'allow' }, { name: 'money', effect: 'deny', limit }]);
    await go('/console/policies/limited');
    await page.until(
      `document.querySelector('#rules').innerText.includes('is denied beyond 2.5 an hour of request.body.amount')`,
    );
    await go('/console/policies/limited?edit');
    await page.click(`${card} .rule-opener`);
    await page.click(`${card} [data-field="effect"] input[value="allow"]`);
    await page.until(`document.querySelector('${card} [data-field="limit"]') === null`);
    await page.click('#leave-editor');
  });

  test('a look-back condition is entered and shown in words; a rule with the effect allow has none', async () => {
    await organisation.ask('POST', '/owner/policies', { name: 'looking', rules: [{ effect: 'allow' }] });
    await go('/console/policies/looking?edit');
    await page.click('#add-rule');
    const card = '[data-rule="1"]';
    const after = `${card} [data-field="after"]`;
    await page.click(`${card} [data-field="effect"] input[value="require_approval"]`);
    await page.click(`${after} input[type="checkbox"]`);
    // A rule has either a limit or a look-back condition.
    await page.until(`document.querySelector('${card} [data-field="limit"]') === null`);
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('${after} > .wrong')?.innerText.includes('says no calls')`);
    const { fill } = mouse(page);
    await fill(`${after} input[maxlength="7"]`, '2d');
    await page.click(`${after} [data-field="methods"] input[value="GET"]`);
    await page.click(`${after} [data-field="scopes"] input`);
    await page.type('demo:read');
    await page.click('#save');
    await page.click('#save-now');
    await says(page, 'version 2 is in force');
    const stored = (await organisation.ask('GET', '/owner/policies/looking')).body.rules;
    expect(stored).toEqual([
      { effect: 'allow' },
      { effect: 'require_approval', after: { within: '2d', methods: ['GET'], scopes: ['demo:read'] } },
    ]);
    await go('/console/policies/looking');
    await page.until(`document.querySelector('#rules').innerText.includes('waits for 2d after GET with demo:read')`);
    await go('/console/policies/looking?edit');
    await page.until(`document.querySelector('${card}').innerText.includes('for 2d after GET with demo:read')`);
    await page.click(`${card} .rule-opener`);
    await page.click(`${card} [data-field="effect"] input[value="allow"]`);
    await page.until(`document.querySelector('${after}') === null`);
    await page.click('#leave-editor');
  });

  test('the masked fields of a rule are entered and shown in words; a rule with another effect has none', async () => {
    await organisation.ask('POST', '/owner/policies', { name: 'masking', rules: [{ effect: 'allow' }] });
    await go('/console/policies/masking?edit');
    await page.click('#add-rule');
    const card = '[data-rule="1"]';
    const mask = `${card} [data-field="mask"]`;
    await page.click(`${card} [data-field="effect"] input[value="mask"]`);
    // A masking rule has neither a limit nor a look-back condition.
    await page.until(`document.querySelector('${card} [data-field="limit"], ${card} [data-field="after"]') === null`);
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('${mask} > .wrong')?.innerText.includes('masks nothing')`);
    await page.click(`${mask} [data-field="members"] input`);
    await page.type('email');
    await page.click(`${mask} [data-field="values"] input[value="card"]`);
    await page.click('#save');
    await page.click('#save-now');
    await says(page, 'version 2 is in force');
    const stored = (await organisation.ask('GET', '/owner/policies/masking')).body.rules;
    expect(stored).toEqual([{ effect: 'allow' }, { effect: 'mask', mask: { members: ['email'], values: ['card'] } }]);
    await go('/console/policies/masking');
    await page.until(
      `document.querySelector('#rules').innerText.includes('Every call is answered without email and values of the kinds card')`,
    );
    await go('/console/policies/masking?edit');
    await page.until(`document.querySelector('${card}').innerText.includes('email, Card numbers')`);
    await page.click(`${card} .rule-opener`);
    await page.click(`${card} [data-field="effect"] input[value="deny"]`);
    await page.until(`document.querySelector('${mask}') === null`);
    await page.click('#leave-editor');
  });

  test(`${COUNT} rules are searched, changed and saved`, async () => {
    const many = Array.from({ length: COUNT }, (_, at) => ({
      name: `rule of the shop ${at}`,
      effect: 'require_approval',
      methods: ['POST'],
      endpoints: [`/shops/${at}/orders/**`],
      when: `has(request.body.amount) && request.body.amount > ${at}`,
    }));
    await expectStatus(201, organisation.ask('POST', '/owner/policies', { name: 'long', rules: many }));
    await go('/console/policies/long?edit');
    await page.until(`document.querySelectorAll('.rule-card').length === 50`);
    await page.click('#rules-search');
    await page.type(`shop ${ONE}`);
    await page.until(`document.querySelectorAll('.rule-card').length === 1`);
    await page.click(`[data-rule="${ONE}"] .rule-opener`);
    await page.click(`[data-rule="${ONE}"] [data-field="when"] textarea`);
    const before = await page.value<number>('performance.now()');
    for (const key of ' || true') await page.press(key === ' ' ? 'Space' : key);
    await page.until(`document.querySelector('[data-rule="${ONE}"] textarea').value.endsWith('|| true')`);
    expect((await page.value<number>('performance.now()')) - before, 'eight keys').toBeLessThan(5_000);
    await page.click('#save');
    await page.until(`document.querySelectorAll('dialog .diff > li').length === 1`);
    await page.click('#save-now');
    await says(page, 'version 2 is in force');
    await page.click('#edit');
    await page.click('input[value="yaml"]');
    await page.until(`document.querySelector('#rules-text')?.value.includes('rule of the shop ${COUNT - 1}')`);
    await page.click('#leave-editor');
  });

  test('the pages fit on small phones, and axe finds nothing', async () => {
    await go('/console/policies');
    await expectAccessible(page, 'the policies');
    await page.click('#new-policy');
    await there('dialog');
    await expectAccessible(page, 'the starting points', 'dialog');
    await page.press('Escape');
    await go('/console/policies/careful');
    await page.click('#versions summary');
    await there('#versions .diff');
    await expectAccessible(page, 'a policy');
    await page.click('#edit');
    await page.click('[data-rule="1"] .rule-opener');
    await page.click('[data-rule="1"] [data-field="scopes"] input');
    await there('[role="listbox"]');
    await expectAccessible(page, 'a card with its list');
    await page.press('Escape');
    await page.click('[data-rule="1"] input[value="allow"]');
    await page.click('[data-days="7"]');
    await there('#tried .counts');
    await page.click('#try-endpoint');
    await page.click('#try-endpoint-list [data-value="/items/*"]');
    await page.until(`document.querySelector('#try-endpoint').value === '/items/1'`);
    await page.click('#try-one');
    await there('#one-result');
    await expectAccessible(page, 'a try');
    // A body with a duplicate member is ambiguous, so it is not tried.
    await mouse(page).fill('#try-body', '{"a": 1, "a": 2}');
    await page.click('#try-one');
    await page.until(`document.querySelector('.part-like [role="alert"]')?.innerText.includes('/data/a: this member')`);
    await page.click('#save');
    await there('#last-try');
    await expectAccessible(page, 'the question before saving', 'dialog');
    await page.press('Escape');
    await organisation.ask('POST', '/owner/policies/careful', { rules: RULES.slice(0, 1) });
    await page.click('#save');
    await page.click('#save-now');
    await there('#conflict .diff');
    await expectAccessible(page, 'a conflict');
    await page.click('#take-theirs');
    expect(page.complaints.filter((one) => !/40[09]/.test(one))).toEqual([]);
  });
});
