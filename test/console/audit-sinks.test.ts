/** Audit sinks in the console: adding, testing, pausing, moving and removing, in a real browser against a real receiver. */
import { expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, openConsole, says, write } from '../world/browser/console.ts';
import { rowsIn, startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { newFolder } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

describeInChromium('audit sinks in the console', () => {
  const receiver = shared(() => startAuditReceiver());
  const world = givenWorld('sqlite', () => ({
    AGENT_BROKER_ALLOW_PRIVATE: receiver.address,
    AUDIT_FOLDER: newFolder(),
  }));
  const organisation = shared(() => world.demoOrganisation(receiver.platform));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const sinks = async () => (await organisation.ask('GET', '/owner/audit-sinks')).body.sinks;
  const choose = (selector: string, value: string) =>
    page.value(`{ const select = document.querySelector(${JSON.stringify(selector)});
        select.value = ${JSON.stringify(value)}; select.dispatchEvent(new Event('change', { bubbles: true })); }`);
  const has = (words: string) =>
    `document.querySelector('[data-sink="siem"] .how-far').innerText.includes(${JSON.stringify(words)})`;
  /** Waits for a condition by opening the page again: an open page polls only every five seconds. */
  const later = async (condition: string) => {
    const until = Date.now() + 15_000;
    while (!(await page.value(condition).catch(() => false))) {
      if (Date.now() > until) throw new Error(`never came true: ${condition}`);
      // Opening it takes all of a processor meanwhile.
      await new Promise((over) => setTimeout(over, 250));
      await goTo(page, `${world.running.baseUrl}/console/audit-sinks`);
      await page.until(`document.querySelector('[data-sink="siem"]') !== null`);
    }
  };
  const indexes = () => receiver.seen.flatMap(({ body }) => rowsIn(body).map(({ index }) => index));

  test('by mouse: a webhook sink is added from the settings, its key is shown once, and all rows from the first are sent', async () => {
    await page.click('nav a[href="/console/settings"]');
    // The link moves down while the content above it loads.
    await page.until(
      `document.querySelector('#retention') && document.querySelector('main').innerText.includes('Receipts')`,
    );
    await page.click('#to-audit-sinks');
    await page.until(`document.querySelector('#no-sinks') !== null`);
    await page.click('#add-sink');
    await write(page, '#sink-name', 'siem');
    await write(page, '[data-field="url"]', `${receiver.url}/in`);
    await choose('#sink-from', 'beginning');
    await choose('#sink-format', 'json');
    await expectAccessible(page, 'the form of an audit sink');
    await page.click('#do-it');
    await page.until(`document.querySelector('dialog .command')?.innerText.startsWith('whsec_')`);
    await page.click('#kept');
    await page.until(`document.querySelector('[data-sink="siem"] .state')?.innerText === 'Working'`);
    await page.until(has('Up to date.'));
    expect(indexes()[0]).toBe(0);
    await page.click('[data-sink="siem"] .test');
    await says(page, 'It would take rows.');
  });

  test('a paused sink receives nothing and shows how many rows wait; a resumed sink receives them', async () => {
    await page.click('[data-sink="siem"] .turn');
    await page.until(`document.querySelector('[data-sink="siem"] .state').innerText === 'Paused'`);
    const before = indexes().length;
    const agent = await organisation.agent();
    await expectStatus(403, agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:nothing' }));
    await later(`/[1-9][0-9]* rows? wait/.test(document.querySelector('[data-sink="siem"] .how-far').innerText)`);
    expect(indexes().length).toBe(before);
    await page.click('[data-sink="siem"] .turn');
    await later(has('Up to date.'));
    expect(indexes().length).toBeGreaterThan(before);
  });

  test('a sink can be sent rows again from a given row, and a refused change is shown next to the field', async () => {
    await page.click('[data-sink="siem"] .move');
    await write(page, '#from-row', '1');
    receiver.forget();
    await page.click('#do-it');
    await says(page, '“siem” is sent');
    await later(has('Up to date.'));
    expect(indexes()[0]).toBe(1);
    await page.click('[data-sink="siem"] .change');
    await write(page, '[data-field="url"]', 'https://10.1.2.3/in');
    await page.click('#do-it');
    await says(page, 'is changed');
    await later(`document.querySelector('[data-sink="siem"] .state').innerText === 'Failing'`);
    await later(has('AGENT_BROKER_ALLOW_PRIVATE'));
  });

  test('the secret of object storage has several fields, a file sink has none, and a missing secret is refused with a message', async () => {
    await page.click('#add-sink');
    await choose('#sink-kind', 's3');
    await write(page, '#sink-name', 'archive');
    await write(page, '[data-field="url"]', receiver.url);
    await write(page, '[data-field="region"]', 'eu-central-1');
    await write(page, '[data-field="bucket"]', 'audit');
    await write(page, '#sink-access_key_id', 'AKIAEXAMPLE');
    await page.click('#do-it');
    expect((await sinks()).length, 'the browser asks for the other part').toBe(1);
    await write(page, '#sink-secret_access_key', 'wJalrXUtnFEMI');
    await page.click('#do-it');
    await says(page, 'The audit is pushed to “archive”');
    await page.click('#add-sink');
    await choose('#sink-kind', 'file');
    await page.until(`document.querySelector('#sink-secret') === null`);
    await write(page, '#sink-name', 'kept');
    await page.click('#do-it');
    await says(page, 'The audit is pushed to “kept”');
    expect(
      (await sinks()).map(({ name, kind, has_secret }: Record<string, unknown>) => [name, kind, has_secret]),
    ).toEqual([
      ['archive', 's3', true],
      ['kept', 'file', false],
      ['siem', 'webhook', true],
    ]);
  });

  test('a sink is removed by keyboard, and the removal is recorded in the audit', async () => {
    await page.value(`document.querySelector('[data-sink="siem"] .remove').focus()`);
    await page.press('Enter');
    await page.until(`document.querySelector('#do-it') !== null`);
    await page.value(`document.querySelector('#do-it').focus()`);
    await page.press('Enter');
    await says(page, 'no longer pushed to “siem”');
    await page.until(`document.querySelector('[data-sink="siem"]') === null`);
    const { rows } = (await organisation.ask('GET', '/owner/audit?reason=audit_sink_removed')).body;
    expect(rows).toHaveLength(1);
  });

  test('a person without the admin role reads why no sinks are shown; the API offers file sinks when the broker has an audit folder', async () => {
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await goTo(viewer, `${world.running.baseUrl}/console/audit-sinks`);
    await viewer.until(`document.querySelector('#not-admin')?.innerText.includes('viewer')`);
    expect(
      (await organisation.ask('GET', '/owner/audit-sink-kinds')).body.kinds.map(({ kind }: { kind: string }) => kind),
    ).toContain('file');
  });
});
