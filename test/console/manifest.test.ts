/** Changing the manifest of a custom platform in the console. */
import { expect, test } from 'vitest';
import { putPlatform } from '../../broker/store/governed-versions.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, goTo, openConsole, says } from '../world/browser/console.ts';
import { mouse } from '../world/browser/input-device.ts';
import { CANARY, givenWorld, READ, shared } from '../world/world.ts';

describeInChromium('changing a manifest', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());
  const TEXT = '[data-field="manifest"]';
  const text = (page: Page) => page.value<string>(`document.querySelector('${TEXT}').value`);
  /** Sets the whole text in one step; tasks.test.ts types it. */
  const write = (page: Page, value: string) =>
    page.value(
      `((area) => { area.value = ${JSON.stringify(value)}; area.dispatchEvent(new Event('input', { bubbles: true })); })(document.querySelector('${TEXT}'))`,
    );
  const wrong = (page: Page, words: string) =>
    page.until(`document.querySelector('#manifest-wrong')?.innerText.includes(${JSON.stringify(words)})`);
  const open = async (organisation: Awaited<ReturnType<typeof world.demoOrganisation>>) => {
    const page = await openConsole(world, browser, organisation.owner);
    await goTo(page, `${world.running.baseUrl}/console/connections/new?to=demo`);
    await page.click('#change-manifest');
    await page.until(`document.querySelector('${TEXT}')?.value.length > 0`);
    return page;
  };

  test('the manifest is shown, refused with every problem when invalid, previewed, and then in force', async () => {
    const organisation = await world.demoOrganisation({ manifest: { name: 'CRM <b>' } });
    const agent = await organisation.agent();
    const page = await open(organisation);
    const before = await text(page);
    expect(before).toContain('scopes:\n  demo:read:\n    - GET /items\n    - GET /items/*\n');
    await write(page, 'base_url: [');
    await page.click('#look-at-changes');
    await wrong(page, 'line 1');
    await write(page, 'just words');
    await page.click('#look-at-changes');
    await wrong(page, 'names and values belong here');
    await write(page, `${before.replace('type: bearer', 'type: magic')}colour: red\n`);
    await page.click('#look-at-changes');
    await wrong(page, 'entry.auth.type');
    await wrong(page, 'colour');
    await expectAccessible(page, 'a manifest that is none', 'dialog');
    await page.resize(DESKTOP);
    await page.screenshot('manifest-wrong');
    await write(page, before.replace('/v1', '/v2').replace('  demo:write:', '  demo:change:'));
    await page.click('#look-at-changes');
    await page.until(`document.querySelector('#manifest-changes') !== null`);
    const said = await page.value<string>(`document.querySelector('dialog').innerText`);
    expect(said).toContain(`base_url: ${world.upstream.url}/v1 → ${world.upstream.url}/v2`);
    expect(said).toContain('scope demo:change: added (POST /items, PATCH /items/*)');
    expect(said).toContain('The scope demo:write is removed, and an agent holds it');
    expect(await page.value(`document.activeElement.id`)).toBe('back');
    await expectAccessible(page, 'what a manifest changes', 'dialog');
    await page.resize(DESKTOP);
    await page.screenshot('manifest-changes');
    expect((await agent.act(READ)).status).toBe(200);
    expect(world.upstream.seen.at(-1)?.target).toBe('/v1/items');
    await page.click('#save-manifest');
    await says(page, 'has version 2 of its manifest');
    expect((await agent.act(READ)).status).toBe(200);
    expect(world.upstream.seen.at(-1)?.target).toBe('/v2/items');
    await page.until(`document.querySelector('#manifest').innerText.includes('demo:change')`);
    expect(await page.value('document.body.innerText')).not.toContain(CANARY);
    expect(page.complaints.filter((one) => !/400/.test(one))).toEqual([]);
  });

  test('the manifest of a built-in platform from an earlier release is updated after a preview of the changes', async () => {
    const organisation = await world.demoOrganisation();
    const made = await organisation.ask('POST', '/owner/platforms', { platform: 'pay', entry: { use: 'stripe' } });
    const { refused_headers: _refused, ...rest } = made.body.manifest;
    const { 'stripe:balance.read': _balance, ...scopes } = rest.scopes;
    const manifest = JSON.stringify({ ...rest, scopes });
    const place = { organisationId: organisation.id, platformId: 'pay', entry: '{"use":"stripe"}' };
    await putPlatform(world.db, { ...place, manifest }, Date.now());
    const page = await openConsole(world, browser, organisation.owner);
    await page.until(`document.querySelector('#updates-wait')?.innerText.includes('A platform has the manifest')`);
    await expectAccessible(page, 'the inbox with an update of a platform');
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await viewer.until(`document.body.innerText.includes('There are no agents yet')`);
    expect(await viewer.value(`document.querySelector('#updates-wait')`)).toBeNull();
    await page.click('#updates-wait a');
    await page.until(`document.querySelector('#updates') !== null`);
    expect(await page.value('document.querySelector("#updates").innerText')).not.toContain('demo');
    await page.resize(DESKTOP);
    await expectAccessible(page, 'updates of platforms');
    await page.value(`document.querySelector('#updates').scrollIntoView()`);
    await page.screenshot('updates');
    await page.click('[data-update="pay"]');
    await page.until(`document.querySelector('#manifest-changes') !== null`);
    const said = await page.value<string>(`document.querySelector('dialog').innerText`);
    expect(said).toContain('refused_headers: none → stripe-account, stripe-context');
    expect(said).toContain('scope stripe:balance.read: added');
    await expectAccessible(page, 'what an update changes', 'dialog');
    await page.screenshot('update-changes');
    await page.click('#update-platform');
    await says(page, 'has version 3 of its manifest');
    await page.until(`document.querySelector('#updates') === null`);
    const { version, update_available } = (await organisation.ask('GET', '/owner/platforms/pay')).body;
    expect([version, update_available]).toEqual([3, false]);
    expect(page.complaints).toEqual([]);
  });

  test('a concurrent change of the manifest is not overwritten, and a click outside the dialog does not discard the text', async () => {
    const organisation = await world.demoOrganisation();
    const page = await open(organisation);
    const before = await text(page);
    await write(page, `${before}name: Mine\n`);
    for (const type of ['mousePressed', 'mouseReleased'])
      await page.command('Input.dispatchMouseEvent', { type, x: 4, y: 4, button: 'left', clickCount: 1 });
    await mouse(page).use(TEXT);
    expect(await text(page)).toContain('Mine');
    const { manifest } = (await organisation.ask('GET', '/owner/platforms/demo')).body;
    const theirs = { entry: { ...manifest, name: 'Theirs' }, version: 1 };
    expect((await organisation.ask('POST', '/owner/platforms/demo', theirs)).status).toBe(200);
    await page.click('#look-at-changes');
    await wrong(page, 'Version 2 is in force, not 1');
    expect(await text(page)).toContain('Mine');
    await page.click('#load-version');
    await page.until(`document.querySelector('${TEXT}').value.includes('Theirs')`);
    await write(page, (await text(page)).replace('Theirs', 'Ours'));
    await page.click('#look-at-changes');
    await page.click('#save-manifest');
    await says(page, 'has version 3 of its manifest');
    expect((await organisation.ask('GET', '/owner/platforms/demo')).body.name).toBe('Ours');
  });

  test('the dialog asks for the values that `auth` references, and an empty field keeps the stored value', async () => {
    const organisation = await world.demoOrganisation();
    const page = await open(organisation);
    const auth = 'type: oauth2\n  issuer: https://id.example\n  client_id: abc\n  client_secret: { env: CRM_SECRET }';
    await write(page, (await text(page)).replace('type: bearer', auth));
    await page.click('#look-at-changes');
    await wrong(page, 'secrets.client_secret: is missing');
    await mouse(page).fill('[data-part="client_secret"]', 'CANARY-client-0123456789');
    await page.click('#look-at-changes');
    await page.click('#save-manifest');
    await says(page, 'has version 2 of its manifest');
    await page.until(`document.querySelector('dialog') === null`);
    await page.click('#change-manifest');
    await page.until(`document.querySelector('[data-part="client_secret"]') !== null`);
    await write(page, `${await text(page)}docs: https://crm.example/docs\n`);
    await page.click('#look-at-changes');
    await page.until(`document.querySelector('#manifest-changes li') !== null`);
    const said = await page.value<string>(`document.querySelector('#manifest-changes').innerText`);
    expect(said).toContain('docs');
    expect(said).not.toContain('client_secret');
  });

  test('an unchanged manifest is reported and not saved, and only admins are offered the change', async () => {
    const organisation = await world.demoOrganisation();
    const page = await open(organisation);
    await page.click('#look-at-changes');
    await page.until(`document.querySelector('dialog').innerText.includes('says the same')`);
    expect(await page.value(`document.querySelector('#save-manifest')`)).toBe(null);
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await goTo(viewer, `${world.running.baseUrl}/console/connections/new?to=demo`);
    await viewer.until(`document.body.innerText.includes('an admin connects platforms')`);
    expect(await viewer.value(`document.querySelector('#change-manifest')`)).toBe(null);
  });
});
