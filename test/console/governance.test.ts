/** The governance file in the console: exported from what is in force, previewed, applied, and refused with every reason. */
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { referencesIn } from '../../broker/console/static/governance/references.js';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, openConsole, PHONE, says } from '../world/browser/console.ts';
import { mouse } from '../world/browser/input-device.ts';
import { leaksOf } from '../world/canary.ts';
import { everythingStored } from '../world/store-contents.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const SECRET = 'CANARY-of-the-file-0123456789';
const FILE = `platforms:
  crm: { kind: rest, base_url: "https://crm.example/api", auth: { type: bearer }, scopes: { "crm:read": ["GET /**"] } }
connections:
  crm-main: { platform: crm, secret: { env: CRM_TOKEN } }
policies:
  careful: { rules: [{ effect: allow, scopes: ["crm:*"] }] }
agents:
  reader: { policy: careful, grants: { crm: { scopes: ["crm:read"] } } }
`;

describeInChromium('the governance file in the console', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());
  const organisation = shared(() => world.organisation());
  const text = (selector: string) => `document.querySelector('${selector}')?.innerText.replace(/\\s+/g, ' ')`;
  const has = (page: Page, selector: string, words: string) =>
    page.until(`${text(selector)}.includes(${JSON.stringify(words)})`);
  /** Sets the whole text in one step; tasks.test.ts types it. */
  const write = (page: Page, value: string) =>
    page.value(
      `((area) => { area.value = ${JSON.stringify(value)}; area.dispatchEvent(new Event('input', { bubbles: true })); })(document.querySelector('#governance-text'))`,
    );
  const open = async (by = organisation.owner) => {
    const page = await openConsole(world, browser, by);
    await goTo(page, `${world.running.baseUrl}/console/governance`);
    await page.until(`document.querySelector('#governance-text') !== null`);
    return page;
  };

  test('a file is previewed without secrets, then with them, and applied; the token of a new agent is shown', async () => {
    const page = await open();
    await write(page, FILE);
    await page.click('#show-plan');
    await has(page, '#plan-head', 'It would change: 6 new');
    await has(page, '#plan', 'To apply it, give these values above and look again: env:CRM_TOKEN');
    await has(page, '#changes', 'New the platform crm kind: rest base_url: https://crm.example/api');
    expect(await page.value(`document.querySelector('#apply').disabled`)).toBe(true);
    await expectAccessible(page, 'a file that names a secret');
    await page.resize(DESKTOP);
    await page.screenshot('governance-plan.png');
    await mouse(page).fill('[data-value="env:CRM_TOKEN"]', SECRET);
    await page.until(`document.querySelector('#plan') === null`);
    await page.click('#show-plan');
    await page.until(`document.querySelector('#apply:enabled') !== null`);
    await page.click('#apply');
    await has(page, 'dialog', '6 new: applied together');
    expect(await page.value(`document.querySelector('#removed')`)).toBe(null);
    await page.click('#apply-now');
    await says(page, 'The file is in force.');
    await has(page, '#applied', 'In force: 6 new');
    const token = await page.value<string>(`document.querySelector('[data-token-of="reader"] pre').innerText`);
    expect(token).toMatch(/^abt_/);
    await expectAccessible(page, 'what was applied');
    await page.resize(DESKTOP);
    await page.screenshot('governance-applied.png');
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    expect(connections).toMatchObject([{ label: 'crm-main', has_secret: true, secret_from: 'env:CRM_TOKEN' }]);
    expect(
      await page.value(`document.documentElement.outerHTML + JSON.stringify({ ...localStorage, ...sessionStorage })`),
    ).not.toContain('CANARY');
    for (const [place, bytes] of await everythingStored(world.environment))
      expect([place, leaksOf(SECRET, bytes)]).toEqual([place, []]);
    // Applying the same file again changes nothing, and asks for no value that is already stored.
    await write(page, FILE);
    await page.click('#show-plan');
    await has(page, '#plan-head', 'It changes nothing');
    await has(page, '#values', 'is stored, and stays');
    expect(page.complaints).toEqual([]);
  });

  test('the governance in force is edited as a file; removals are listed by name before it is applied', async () => {
    const mine = await world.organisation();
    await mine.policy(ALLOW_ALL, 'old <b>');
    const page = await open(mine.owner);
    await page.click('#take-present');
    await page.until(`document.querySelector('#governance-text').value.includes('old <b>')`);
    const present = await page.value<string>(`document.querySelector('#governance-text').value`);
    const rest = present.replace(/policies:[\s\S]*?(?=^guardrails:)/m, 'policies: {}\n');
    expect(rest).not.toContain('old <b>');
    await write(page, rest);
    await page.click('#show-plan');
    await has(page, '#changes', 'Removed the policy old <b>');
    // A concurrent change by another owner: nothing is applied.
    await page.click('#apply');
    await has(page, '#removed', 'the policy old <b>');
    await expectAccessible(page, 'what a file removes', 'dialog');
    await page.resize(DESKTOP);
    await page.screenshot('governance-removes.png');
    await mine.ask('POST', '/owner/policies', { name: 'newer', rules: [] });
    await page.click('#apply-now');
    await has(page, 'dialog [role="alert"]', 'plan again');
    const names = async () =>
      (await mine.ask('GET', '/owner/policies')).body.policies.map(({ name }: { name: string }) => name);
    expect(await names()).toEqual(['newer', 'old <b>']);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await page.click('#show-plan');
    await has(page, '#plan-head', '2 removed');
    await page.click('#apply');
    await page.click('#apply-now');
    await says(page, 'The file is in force.');
    expect(await names()).not.toContain('newer');
  });

  test('applied versions are listed, and a return to an earlier one is previewed before it is applied', async () => {
    const mine = await world.organisation();
    const apply = (text: string) => mine.ask('POST', '/owner/governance/apply', { text });
    await apply('guardrails: [{ name: freeze, effect: deny }]');
    await apply('guardrails: []');
    const page = await open(mine.owner);
    await has(page, '#applies', '1 removed');
    await has(page, '#applies', mine.owner.email);
    const newest = '#applies > li:first-child';
    await page.click(`${newest} summary`);
    await has(page, newest, 'the guardrails');
    await expectAccessible(page, 'what was applied');
    for (const size of [PHONE, DESKTOP]) {
      await page.resize(size);
      await page.screenshot(`governance-applies-${size.width}.png`);
    }
    await page.prefer('dark');
    await page.screenshot('governance-applies-dark.png');
    await page.prefer('light');
    await page.click(`${newest} .go-back`);
    await has(page, '#changes', 'New the guardrails');
    await page.click('#apply');
    await page.click('#apply-now');
    await says(page, 'The file is in force.');
    const { guardrails } = (await mine.ask('GET', '/owner/guardrails')).body;
    expect(guardrails).toMatchObject([{ name: 'freeze' }]);
    await page.until(`document.querySelectorAll('#applies > li').length === 3`);
    expect(page.complaints).toEqual([]);
  });

  test('an invalid file is refused with every reason and its line', async () => {
    const page = await open();
    await write(page, 'platforms: [');
    await page.click('#show-plan');
    await has(page, '#file-wrong', 'governance.yaml:1');
    await write(page, 'policies:\n  x: { rules: [{ effect: permit }] }\nagents:\n  y: { policy: none }\n');
    await page.click('#show-plan');
    await has(page, '#file-wrong', 'governance.yaml:2');
    await has(page, '#file-wrong', 'permit');
    await expectAccessible(page, 'a file that is none');
  });

  test('a file that is not valid UTF-8 is refused, both as the governance file and as a value', async () => {
    const page = await open();
    const choose = (field: string, bytes: Buffer) =>
      page.value(`((field) => {
          const files = new DataTransfer();
          files.items.add(new File([Uint8Array.fromBase64('${bytes.toString('base64')}')], 'chosen.yaml'));
          field.files = files.files;
          field.dispatchEvent(new Event('change', { bubbles: true }));
        })(document.querySelector('${field}'))`);
    const rule = `guardrails:\n  - { name: no-cafe, effect: deny, when: "request.body.team == 'café'" }\n`;
    await write(page, 'policies: {}\n');
    await choose('#governance-file', Buffer.from(rule, 'latin1'));
    await has(page, '#governance-form [role="alert"]', 'chosen.yaml is not text in UTF-8, from its line 2 on');
    expect(await page.value(`document.querySelector('#governance-text').value`)).toBe('policies: {}\n');
    await expectAccessible(page, 'a file that is no text');
    await choose('#governance-file', Buffer.from(`\ufeff${rule}`, 'utf16le'));
    await has(page, '#governance-form [role="alert"]', 'chosen.yaml is text in UTF-16; save it in UTF-8.');
    await choose('#governance-file', Buffer.from(`\ufeff${rule}`));
    await page.until(`document.querySelector('#governance-text').value === ${JSON.stringify(rule)}`);
    expect(await page.value(`document.querySelector('#governance-form [role="alert"]')`)).toBe(null);

    await write(page, FILE.replace('env: CRM_TOKEN', 'file: crm.token'));
    await page.click('#show-plan');
    await has(page, '#plan', 'To apply it, give these values above and look again: file:crm.token');
    await choose('[data-value="file:crm.token"]', Buffer.from(SECRET));
    await choose('[data-value="file:crm.token"]', Buffer.from('g\xfcltig', 'latin1'));
    await has(page, '#values [role="alert"]', 'chosen.yaml is not text in UTF-8, from its line 1 on');
    await page.click('#show-plan');
    await has(page, '#plan', 'To apply it, give these values above and look again: file:crm.token');
  });

  test('a viewer can preview the changes of a file, is asked for no secret, and cannot apply it', async () => {
    const page = await open(await organisation.addOwner('viewer'));
    await write(page, `${FILE}guardrails: [{ name: freeze, effect: deny }]\n`);
    await page.click('#show-plan');
    await has(page, '#changes', 'the guardrails');
    await has(page, '#plan', 'Your role is viewer');
    expect(await page.value(`document.querySelector('#values, #apply')`)).toBe(null);
  });
});

test('the variables and files that a governance file references are found at any depth, each once', () => {
  const text = `
platforms: { a: { auth: { type: oauth2, client_id: { env: ID }, client_secret: { file: a.key } } } }
connections: { a: { platform: a, secret: { env: ID } }, b: { platform: b, secret: { access_key_id: { env: X }, secret_access_key: { env: Y } } } }
agents: { x: { public_key: { file: x.pem } }, y: { public_key: { pem: "…" } } }
`;
  expect(referencesIn(parse(text))).toEqual([
    { key: 'env:ID', isKey: false },
    { key: 'file:a.key', isKey: false },
    { key: 'env:X', isKey: false },
    { key: 'env:Y', isKey: false },
    { key: 'file:x.pem', isKey: true },
  ]);
  expect(referencesIn(parse('a: &a [*a]\nb: { env: 5 }'))).toEqual([]);
});
