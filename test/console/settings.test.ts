/** The organisation's settings and the reports of agents, in a real browser. */
import { expect, test, vi } from 'vitest';
import { putMeta } from '../../broker/store/meta.ts';
import { expectStatus, send } from '../world/agent.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, openConsole, PHONE, says, write } from '../world/browser/console.ts';
import { keyboard } from '../world/browser/input-device.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, shared } from '../world/world.ts';

const HOSTILE = '<img src=x onerror=alert(1)>\u202e';
const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:nothing' };

describeInChromium('settings and reports in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation({ name: `acme ${HOSTILE}` }));
  const agent = shared(() => organisation.agent({ name: HOSTILE }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  const go = (path: string, on = page) => goTo(on, world.running.baseUrl + path);
  const has = (words: string, on = page) =>
    on.until(`document.querySelector('main').innerText.includes(${JSON.stringify(words)})`);
  const resolved = async () => (await send(`${world.running.baseUrl}/agents/${agent.agentId}/did.json`, {})).status;
  const settings = async () => (await organisation.ask('GET', '/owner/organisation')).body;

  test('the navigation links to the settings; publishing asks for confirmation, states what becomes public, and applies immediately', async () => {
    await page.click('nav a[href="/console/settings"]');
    await page.until(`location.pathname === '/console/settings' && document.title.includes('Settings')`);
    await has('Not published');
    expect(await resolved()).toBe(404);
    await page.click('#publish');
    await page.until(`document.querySelector('dialog') !== null`);
    const told = await page.value<string>(`document.querySelector('dialog').innerText`);
    for (const words of ['without signing in', 'public key', 'TRQP', 'Nobody learns its name', 'stays'])
      expect(told).toContain(words);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect((await settings()).publish_identity_documents, 'nothing happens by looking').toBe(false);
    expect(await resolved()).toBe(404);
    await page.click('#publish');
    await page.click('#change');
    await says(page, 'Identity documents are published.');
    await page.until(`document.querySelector('#published').innerText === 'Published'`);
    expect(await resolved()).toBe(200);
  });

  test('the keys of the installation are listed with the command that rotates each, and cannot be rotated in the console', async () => {
    // The key of the receipt log is created with the first checkpoint, which may be before or after the page is opened.
    await vi.waitUntil(async () => (await organisation.ask('GET', '/owner/log')).body.checkpoint, {
      timeout: 30_000,
    });
    await go('/console/settings');
    const { in_force } = (await organisation.ask('GET', '/owner/keys')).body;
    expect(in_force.map(({ use }: { use: string }) => use)).toEqual(
      expect.arrayContaining(['evidence', 'log', 'session', 'master']),
    );
    await page.until(`document.querySelectorAll('#keys-in-force > li').length === ${in_force.length}`);
    for (const { use, kid, since } of in_force) {
      const shown = await page.value<string>(`document.querySelector('#keys-in-force [data-use="${use}"]').innerText`);
      expect(shown).toContain(kid);
      expect(shown).toContain(`npx agent-broker keys rotate ${use}`);
      expect(shown.includes('in force since')).toBe(since !== null);
    }
    await expectStatus(401, organisation.ask('POST', '/owner/keys/rotate', { use: 'evidence' }));
    await expectAccessible(page, 'the keys');
    for (const size of [DESKTOP, PHONE]) {
      await page.resize(size);
      await page.value(`document.querySelector('#keys').scrollIntoView()`);
      await page.screenshot(`keys-${size.width}.png`);
    }
    await page.resize(DESKTOP);
  });

  test('the page shows the version, the store, and each process with its release', async () => {
    await world.db.deleteFrom('meta').where('name', '=', 'last_backup').execute();
    await go('/console/settings');
    const { version } = (await organisation.ask('GET', '/version')).body;
    await page.until(`document.querySelectorAll('#processes li').length === 1`);
    expect(await page.value<string>(`document.querySelector('#processes').innerText`)).toContain(`${version}, since`);
    await has('SQLite, in its data folder');
    await has('npx agent-broker backup FILE');
    await has('None with agent-broker backup.');
    await page.value(`document.querySelector('#installation').scrollIntoView()`);
    await page.screenshot('installation.png');
    await putMeta(world.db, 'last_backup', String(Date.now() - 2 * HOUR_MS));
    await go('/console/settings');
    await page.until(`document.querySelector('#last-backup time') !== null`);
    expect(await page.value<string>(`document.querySelector('#last-backup').innerText`)).toContain('2 h ago');
  });

  test('each command that rotates a key is copied with the keyboard alone, and the copy is announced', async () => {
    await go('/console/settings');
    const uses = await page.value<string[]>(
      `[...document.querySelectorAll('#keys-in-force [data-use]')].map(({ dataset }) => dataset.use)`,
    );
    expect(uses).toContain('master');
    const { use } = keyboard(page);
    // Without permission for the clipboard, the line is selected.
    await use('#keys-in-force [data-use="master"] .copy');
    await page.until(`getSelection().toString() === 'npx agent-broker keys rotate master'`);
    await page.allow('clipboardReadWrite', 'clipboardSanitizedWrite');
    // Up and down: the focus reaches each button in both directions.
    for (const one of [...uses.toReversed(), ...uses]) {
      const button = `#keys-in-force [data-use="${one}"] .copy`;
      await use(button);
      await page.until(`document.querySelector('${button}').innerText === 'Copied'`);
      expect(await page.value(`document.activeElement.matches('${button}')`), 'the focus stays').toBe(true);
      const told = await page.value(`(({ ariaLabel, ariaLive }) => [ariaLabel, ariaLive])(document.activeElement)`);
      expect(told, 'what listeners hear').toEqual(['Copied the command', 'polite']);
      expect(await page.value('navigator.clipboard.readText()')).toBe(`npx agent-broker keys rotate ${one}`);
    }
  });

  test('publishing is switched off by keyboard, and both changes are recorded in the audit', async () => {
    await page.value(`document.querySelector('#publish').focus()`);
    await page.press('Enter');
    await page.until(`document.querySelector('dialog')?.innerText.includes('as if the agent did not exist')`);
    await page.value(`document.querySelector('#change').focus()`);
    await page.press('Enter');
    await says(page, 'no longer published');
    await page.until(`document.querySelector('#published').innerText === 'Not published'`);
    expect(await resolved()).toBe(404);
    const { rows } = (await organisation.ask('GET', '/owner/audit?reason=organisation_changed')).body;
    expect(rows.map((row: { flags: { change: object } }) => row.flags.change)).toMatchObject([
      { publish_identity_documents: false, how: 'console' },
      { publish_identity_documents: true, how: 'console' },
    ]);
  });

  test('a rule that stops agents after refusals is set, applies, and is removed', async () => {
    await go('/console/settings');
    await page.until(`document.querySelector('#rule').innerText === 'Off'`);
    await page.value(`document.querySelector('#refusals').select()`);
    await page.click('#refusals');
    await page.value(`document.querySelector('#refusals').select()`);
    await page.type('3');
    await page.value(`document.querySelector('#within').select()`);
    await page.click('#within');
    await page.value(`document.querySelector('#within').select()`);
    await page.type('1.5');
    await page.click('#state-rule');
    await says(page, 'The rule is in force.');
    await has('After 3 refused calls within 1.5 min');
    expect((await settings()).auto_suspend).toEqual({ refusals: 3, within_seconds: 90 });
    const other = await organisation.agent({ name: 'out of hand' });
    for (let i = 0; i < 3; i++) await other.act(READ);
    expect((await other.act(READ)).body.halt.cause).toBe('anomaly_auto_suspend');
    await go('/console/agents');
    await has('because its calls were unusual');
    await go('/console/settings');
    await page.click('#no-rule');
    await says(page, 'The rule is off.');
    await page.until(`document.querySelector('#rule').innerText === 'Off'`);
    expect((await settings()).auto_suspend).toBeNull();
  });

  test('a shorter retention of the audit needs a confirmation, a longer one does not', async () => {
    await go('/console/settings');
    await has('Reads (allowed calls by GET and HEAD): for ever');
    await page.click('#reads_days');
    await page.type('90');
    await page.click('#save-retention');
    await has('allowed calls by GET and HEAD, when they are older than 90 days');
    expect((await settings()).retention.reads_days).toBeNull();
    await page.click('#delete-older');
    await says(page, 'How long the audit is kept is changed.');
    await has('Reads (allowed calls by GET and HEAD): for 90 days');
    expect((await settings()).retention).toEqual({ reads_days: 90, calls_days: null, events_days: null });
    await page.value(`document.querySelector('#reads_days').select()`);
    await page.type('400');
    await page.click('#save-retention');
    await has('Reads (allowed calls by GET and HEAD): for 400 days');
    expect((await settings()).retention.reads_days).toBe(400);
  });

  test('settings that another admin changes while the page is open are not changed back', async () => {
    const kept = (retention: object) => organisation.ask('POST', '/owner/organisation', { retention });
    await kept({ reads_days: 31, calls_days: null, events_days: null });
    await go('/console/settings');
    await has('Reads (allowed calls by GET and HEAD): for 31 days');
    await kept({ reads_days: null, calls_days: null, events_days: null });
    await organisation.ask('POST', '/owner/organisation', { require_user_verification: true });
    // The page reads the settings again after each change that it makes itself.
    await write(page, '#ttl', '90');
    await page.click('#save-approvals');
    await says(page, 'The settings of approvals are changed.');
    await page.until(`document.querySelector('#reads_days').value === ''`);
    await write(page, '#calls_days', '500');
    await page.click('#save-retention');
    await page.click('#delete-older');
    await says(page, 'is changed');
    expect(await settings()).toMatchObject({
      approval_ttl_seconds: 5400,
      require_user_verification: true,
      retention: { reads_days: null, calls_days: 500, events_days: null },
    });
    await kept({ reads_days: null, calls_days: null, events_days: null });
    await organisation.ask('POST', '/owner/organisation', {
      approval_ttl_seconds: 86_400,
      require_user_verification: false,
    });
  });

  test('a person who may not change the settings reads that, and has no buttons', async () => {
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'), PHONE);
    await go('/console/settings', viewer);
    await has('Your role is viewer', viewer);
    await has('Not published', viewer);
    expect(await viewer.value(`document.querySelectorAll('main button, main input').length`)).toBe(0);
    expect(await viewer.value(`document.documentElement.scrollWidth <= innerWidth`)).toBe(true);
  });

  test('the reports of agents are shown as text, with all their details', async () => {
    await go('/console/agents');
    await page.click('#to-reports');
    await page.until(`location.pathname === '/console/reports'`);
    await has('No agent reported anything');
    const refused = await agent.act(READ);
    const payload = { ...refused.body.report_hint.suggested_payload, context: { markup: HOSTILE } };
    const reported = await agent.post('/v1/agents/self/diagnostics', {
      ...payload,
      message: `${HOSTILE}\nwhy?`,
      severity: 'error',
    });
    expect(reported.status).toBe(201);
    await go('/console/reports');
    await page.click('#reports summary');
    await page.until(`document.querySelector('#reports .facts') !== null`);
    const told = await page.value<string>(`document.querySelector('#reports').innerText`);
    for (const words of [
      'Error',
      '<img src=x onerror=alert(1)>⟦U+202E⟧',
      'why?',
      agent.agentId,
      'scope_not_granted',
      refused.body.correlation_id,
      'markup',
    ])
      expect(told).toContain(words);
    expect(await page.value(`document.querySelectorAll('main img').length`)).toBe(0);
  });

  test('older reports are loaded on request', async () => {
    for (let i = 0; i < 55; i++) await agent.post('/v1/agents/self/diagnostics', { message: `report ${i}` });
    await go(`/console/reports?agent=${agent.agentId}`);
    await page.until(`document.querySelectorAll('#reports .row').length === 50`);
    await page.click('.more button');
    await page.until(`document.querySelectorAll('#reports .row').length === 56`);
    await page.resize(PHONE, 'phone');
    expect(await page.value(`document.documentElement.scrollWidth <= innerWidth`)).toBe(true);
    expect(page.complaints).toEqual([]);
  });
});
