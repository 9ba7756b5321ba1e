/** Changes of an agent by an owner in the console, with the mouse and with the keyboard: grants, policy, keys; and stopping all agents. */
import { beforeAll, expect, test } from 'vitest';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { choose, goTo, has, openConsole, says, tabTo } from '../world/browser/console.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

describeInChromium('changing agents in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const triage = shared(() => organisation.agent({ name: 'triage', grants: {} }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const grants = async () => (await organisation.ask('GET', `/owner/agents/${triage.agentId}/grants`)).body.grants;
  beforeAll(() => go(`/console/agents/${triage.agentId}`));

  test('a new grant starts with no scope and an early expiry, and the dialog shows what will change before it is saved', async () => {
    expect((await triage.act(READ)).status).toBe(403);
    await has(page, '#grants', 'It is granted nothing');
    await page.click('#add-grant');
    await has(page, '#would', 'Choose at least one scope');
    expect(await page.value(`document.querySelector('#save-grant').disabled`)).toBe(true);
    await has(page, '.scope-list', 'GET /items');
    await page.click('.scope-list input[name="demo:read"]');
    await has(page, '#would', 'From its next call on: It gains demo:read. It ends in 30 days.');
    await expectAccessible(page, 'granting something', 'dialog');
    await page.click('#save-grant');
    await has(page, '#grants', 'demo:read');
    expect((await triage.act(READ)).status).toBe(200);
    const [grant] = await grants();
    expect(grant.scopes).toEqual(['demo:read']);
    expect(Date.parse(grant.expires_at) - Date.now()).toBeGreaterThan(29 * 86_400_000);
  });

  test('by keyboard alone: adding a scope and requiring approval of every call changes nothing else of the grant', async () => {
    const [before] = await grants();
    // The dialog names scopes, too, so wait until it is closed before reading the list of grants.
    await page.until(
      `document.querySelector('dialog') === null && document.querySelector('#grants [data-verb="change"]') !== null`,
    );
    await page.value(`document.querySelector('#grants [data-verb="change"]').focus()`);
    await page.press('Enter');
    await page.until(`document.querySelector('dialog .scope-list') !== null`);
    await tabTo(page, 'input[name="demo:write"]');
    await page.press(' ');
    await tabTo(page, '[data-field="approval"]');
    await page.press(' ');
    await has(page, '#would', 'It gains demo:write. Every call with it waits for an approval.');
    await tabTo(page, '#save-grant');
    await page.press('Enter');
    await page.until(`document.querySelector('dialog') === null`);
    const [after] = await grants();
    expect(after).toMatchObject({ scopes: ['demo:read', 'demo:write'], require_approval: true });
    expect(after.expires_at).toBe(before.expires_at);
    expect((await triage.act(READ)).status).toBe(202);
  });

  test('a limit to recipients is saved and shown in the list', async () => {
    await page.click('#grants [data-verb="change"]');
    await page.until(`document.querySelector('dialog .scope-list') !== null`);
    if (await page.value(`document.querySelector('[data-list="recipients"]') !== null`)) {
      await page.click('[data-list="recipients"]');
      await page.type('@acme.example');
      await has(page, '#would', 'Of recipients only @acme.example.');
      await page.click('#save-grant');
      await has(page, '#grants', 'Only to the recipients @acme.example.');
    } else await page.press('Escape');
  });

  test('a dialog with the terms of a grant that another owner changed meanwhile does not bring them back', async () => {
    const change = (body: object) => organisation.ask('POST', `/owner/agents/${triage.agentId}/grants/demo`, body);
    expect((await change({ scopes: ['demo:read', 'demo:write'], require_approval: false })).status).toBe(200);
    await go(`/console/agents/${triage.agentId}`);
    await page.click('#grants [data-verb="change"]');
    await page.until(`document.querySelector('dialog .scope-list') !== null`);
    await page.click('[data-field="approval"]');
    await has(page, '#would', 'Every call with it waits for an approval.');
    expect((await change({ scopes: ['demo:read'] })).status).toBe(200);
    await page.click('#save-grant');
    await has(page, 'dialog', 'This grant was changed meanwhile. Nothing was changed');
    expect(await grants()).toMatchObject([{ scopes: ['demo:read'], require_approval: false }]);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
  });

  test('a grant that names the only connection is changed, and not replaced by what is taken for a new one', async () => {
    const agent = await organisation.agent({ name: 'named', grants: {} });
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    const { label } = connections.find((one: { platform: string }) => one.platform === 'demo');
    const body = { scopes: ['demo:read'], connection: label };
    expect((await organisation.ask('POST', `/owner/agents/${agent.agentId}/grants/demo`, body)).status).toBe(201);
    await go(`/console/agents/${agent.agentId}`);
    await has(page, '#grants', 'demo:read');
    await page.click('#add-grant');
    await has(page, 'dialog', 'It has a grant there already');
    expect(await page.value(`document.querySelector('.scope-list input[name="demo:read"]').checked`)).toBe(true);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await go(`/console/agents/${triage.agentId}`);
  });

  test('a grant is removed after a confirmation', async () => {
    await page.click('#grants [data-verb="remove"]');
    await has(page, 'dialog', 'triage loses');
    await page.click('#remove-grant');
    await has(page, '#grants', 'It is granted nothing');
    expect(await grants()).toEqual([]);
  });

  test('the policy is changed after the dialog showed the consequences', async () => {
    const careful = await organisation.policy([{ effect: 'deny' }], 'very careful');
    await go(`/console/agents/${triage.agentId}`);
    await page.click('#change-policy');
    await page.until(`document.querySelectorAll('#policy option').length > 1`);
    await choose(page, '#policy', careful);
    await has(page, 'dialog', 'the rules of “very careful” apply instead of');
    await page.click('#save-policy');
    await has(page, '.facts', 'Policy very careful');
  });

  test('a static key is shown once and can be revoked; a new key starts with a command to run', async () => {
    await page.click('#issue-key');
    await page.until(`document.querySelectorAll('#key-connection option').length > 0`);
    await page.click('#key-label');
    await page.type('build machine');
    await page.click('#issue');
    await page.until(`document.querySelector('dialog .command pre')?.innerText.startsWith('abk_')`);
    const key = await page.value<string>(`document.querySelector('dialog .command pre').innerText`);
    await page.click('#kept');
    await has(page, '#static-keys', 'build machine Not used yet');
    const used = await fetch(`${world.running.baseUrl}/proxy/demo-main/items`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(used.status).not.toBe(401);
    await world.running.services.staticKeyUses.write();
    await go(`/console/agents/${triage.agentId}`);
    await has(page, '#static-keys', 'build machine Works');
    await organisation.ask('POST', `/owner/agents/${triage.id}/suspend`, {});
    await go(`/console/agents/${triage.agentId}`);
    await has(page, '#static-keys', 'build machine Agent: suspended');
    await organisation.ask('POST', `/owner/agents/${triage.id}/resume`, {});
    expect(await page.value(`document.body.innerText`)).not.toContain(key);
    await page.click('#static-keys [data-verb="end"]');
    await page.click('#end-key');
    await has(page, '#static-keys', 'build machine Revoked');
    await page.click('#new-key');
    await page.click('#make-token');
    await page.until(`document.querySelector('dialog .command pre')?.innerText.includes('--invite abt_')`);
    const line = await page.value<string>(`document.querySelector('dialog .command pre').innerText`);
    expect(line).toMatch(/^npx agent-broker agent create triage --url http:\/\/\S+ --invite abt_\S+$/);
    await page.press('Escape');
  });

  test('two clicks on any page stop all agents, and every page shows that until they are resumed', async () => {
    const busy = await organisation.agent({ name: 'busy' });
    await go('/console/activity');
    await page.click('#stop');
    await has(page, 'dialog', 'one that is approved meanwhile is not made');
    await expectAccessible(page, 'the stop', 'dialog');
    await page.click('#stop-all');
    await says(page, 'All agents are stopped.');
    expect((await busy.act(READ)).status).toBe(403);
    await has(page, '#all-stopped', `All agents are stopped`);
    await go('/console/agents');
    await has(page, `[data-agent="${busy.agentId}"]`, 'Stopped with all');
    await page.click('#to-resume');
    await page.click('#stop-all');
    await page.until(`document.querySelector('#all-stopped') === null`);
    expect((await busy.act(READ)).status).toBe(200);
  });

  test('a platform is stopped and resumed by keyboard; a person without the admin role reads whom to ask', async () => {
    const busy = await organisation.agent({ name: 'worker' });
    await page.value(`document.querySelector('#stop').focus()`);
    await page.press('Enter');
    await page.until(`document.querySelector('[data-platform="demo"] button') !== null`);
    await page.value(`document.querySelector('[data-platform="demo"] button').focus()`);
    await page.press('Enter');
    await has(page, '[data-platform="demo"]', 'Stopped');
    expect((await busy.act(WRITE)).body.reason).toBe('platform_suspended');
    await page.press('Enter');
    await page.until(`!document.querySelector('[data-platform="demo"]').innerText.includes('Stopped')`);
    expect((await busy.act(READ)).status).toBe(200);
    await page.press('Escape');
    const approver = await openConsole(world, browser, await organisation.addOwner('approver'));
    await approver.click('#stop');
    await approver.until(
      `document.querySelector('dialog')?.innerText.includes('only an admin can stop') && document.querySelector('dialog').innerText.includes('${organisation.owner.email}')`,
    );
    expect(await approver.value(`document.querySelector('#stop-all')`)).toBeNull();
    // The change of a grant that another owner changed first.
    expect(page.complaints.filter((complaint) => !/409 \(Conflict\).*\/grants\/demo$/.test(complaint))).toEqual([]);
  });
});
