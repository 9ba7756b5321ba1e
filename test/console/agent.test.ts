/** The table of agents (search, order) and the page of one agent (details, suspending, links). */
import { beforeAll, expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, has, openConsole, says } from '../world/browser/console.ts';
import { mouse } from '../world/browser/input-device.ts';
import { childOf } from '../world/child.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

describeInChromium('agents in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const triage = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const names = () =>
    page.value<string[]>(`[...document.querySelectorAll('#agents .name strong')].map((one) => one.innerText)`);

  beforeAll(async () => {
    await organisation.agent({ name: 'Idle' });
    await triage.act(READ);
    await triage.act({ ...READ, scope: 'demo:nonsense' });
    expect((await triage.act(WRITE)).status).toBe(202);
  });

  test('the table shows the calls of each agent in the last day and its pending calls, and is sorted by a click on a column head', async () => {
    await go('/console/agents');
    const row = `[data-agent="${triage.agentId}"]`;
    await has(page, row, '3 · 1 refused · 1 held');
    expect(await names()).toEqual(['Idle', 'triage']);
    const owner = `document.querySelector('${row} .owner')`;
    expect(await page.value(`${owner}.scrollWidth <= ${owner}.clientWidth`), 'all of the owner is shown').toBe(true);
    await page.click('#sort-last_call');
    await page.until(`location.search === '?sort=-last_call'`);
    await page.until(`document.querySelector('#agents .row').dataset.agent === '${triage.agentId}'`);
    expect(await page.value(`document.querySelector('#sort-last_call').parentElement.ariaSort`)).toBe('descending');
    await page.click('#sort-last_call');
    await page.until(`document.querySelector('#agents .row').dataset.agent !== '${triage.agentId}'`);
    await page.click(`${row} td[data-label="Waits"] a`);
    await page.until(
      `location.search === '?agent=${triage.agentId}' && document.querySelectorAll('.card').length === 1`,
    );
  });

  test('the name of an agent links to its page with its details, grants, pending calls and past calls', async () => {
    const workload = { issuer: 'https://cluster.example', subject: 'system:serviceaccount:agents:triage' };
    await organisation.ask('POST', `/owner/agents/${triage.agentId}/workload`, workload);
    await go('/console/agents');
    await page.click(`[data-agent="${triage.agentId}"] .name a`);
    await page.until(`location.pathname === '/console/agents/${triage.agentId}'`);
    await has(page, 'h1', 'triage Active');
    expect(await page.value(`document.querySelector('nav [aria-current]').innerText`)).toBe('Agents');
    await has(page, '.facts', `Owner ${organisation.owner.email}`);
    await has(page, '.facts', '3 · 1 refused · 1 held');
    await has(page, '.facts', 'Workload system:serviceaccount:agents:triage of https://cluster.example, never used');
    const beside = `(({ children: [name, value] }) => name.getBoundingClientRect().top === value.getBoundingClientRect().top)`;
    expect(await page.value(`${beside}(document.querySelector('.facts'))`), 'a value stands beside its name').toBe(
      true,
    );
    await has(page, '#waits', 'It wants to');
    await page.click('.page-head .copy, .id .copy');
    await says(page, 'does not let this page copy: select the text');
    await has(page, '#grants', 'demo:read');
    await has(page, '#grants', 'last call there');
    await page.until(`document.querySelectorAll('#activity .row').length === 4`);
    await page.click('#all-activity');
    await page.until(`location.search === '?agent=${triage.agentId}'`);
  });

  test('a grant whose connection has to be connected again says so, and links there', async () => {
    const set = (status: 'active' | 'reauth_needed') =>
      world.db.updateTable('connections').set({ status }).where('organisation_id', '=', organisation.id).execute();
    await set('reauth_needed');
    await go(`/console/agents/${triage.agentId}`);
    await has(page, '#grants .name', 'Connection: needs to be connected again');
    await page.click('#grants .small a');
    await page.until(`location.pathname === '/console/connections' && location.search.startsWith('?connect=')`);
    await has(page, '#connections', "An agent's call needs this connection.");
    await set('active');
    await go(`/console/agents/${triage.agentId}`);
    await has(page, '#grants', 'last call there');
    expect(await page.value(`document.querySelector('.connection-state') === null`)).toBe(true);
  });

  test('an admin sets the workload of an agent, reads the audience to use, and removes the workload', async () => {
    const agent = await organisation.agent({ name: 'in-a-cluster' });
    const { fill } = mouse(page);
    await go(`/console/agents/${agent.agentId}`);
    await has(page, '.facts', 'Workload None');
    await page.click('#change-workload');
    await fill('#issuer', 'https://cluster.example');
    await fill('#subject', 'with spaces');
    await page.click('#save-workload');
    await has(page, 'dialog', 'write printable ASCII without spaces');
    await fill('#subject', 'system:serviceaccount:agents:here');
    await page.click('#save-workload');
    await has(page, 'dialog', `${world.running.baseUrl}/agents/${agent.agentId}`);
    await page.press('Escape');
    await has(page, '.facts', 'Workload system:serviceaccount:agents:here of https://cluster.example, never used');
    await page.click('#change-workload');
    await page.click('#remove-workload');
    await says(page, 'Tokens of the workload are no longer accepted for in-a-cluster.');
    await has(page, '.facts', 'Workload None');
    const { body } = await organisation.ask('GET', `/owner/agents/${agent.agentId}`);
    expect(body.workload).toBeNull();
  });

  test('the page shows how much of each rule limit the agent has used, and which limit is used up', async () => {
    const limit = { most: 1, per: 'month' };
    const rules = [{ effect: 'allow' }, { name: 'one-a-month', effect: 'deny', scopes: ['demo:write'], limit }];
    const limited = await organisation.agent({ name: 'limited', rules });
    await go(`/console/agents/${limited.agentId}`);
    await has(page, '#limits', 'one-a-month policy 0 of 1 a month · resets in');
    expect((await limited.act({ ...WRITE, data: {} })).status).toBe(200);
    await go(`/console/agents/${limited.agentId}`);
    await has(page, '#limits', '1 of 1 a month');
    await has(page, '#limits .badge', 'Used up');
    await go(`/console/agents/${triage.agentId}`);
    await has(page, '#grants', 'demo:read');
    expect(await page.value(`document.querySelector('#limits')`), 'an agent under no limit has no such part').toBe(
      null,
    );
  });

  test('the page lists a rule that applies because of an earlier call, with a link to that call', async () => {
    const after = { scopes: ['demo:read'], within: '2d' };
    const rules = [{ effect: 'allow' }, { name: 'after-reading', effect: 'deny', scopes: ['demo:write'], after }];
    const reader = await organisation.agent({ name: 'reader', rules });
    await go(`/console/agents/${reader.agentId}`);
    await has(page, '#grants', 'demo:read');
    expect(await page.value(`document.querySelector('#earlier')`)).toBe(null);
    const { audit_id } = (await reader.act(READ)).body._meta;
    await go(`/console/agents/${reader.agentId}`);
    await has(page, '#earlier', 'after-reading policy applies for another 2 d');
    await page.click('#earlier a');
    await page.until(`location.search.includes('${audit_id}')`);
    await page.until(`document.querySelector('main').innerText.includes('/items')`);
  });

  test('an agent is suspended and resumed on its page; a person without the admin role reads why they cannot', async () => {
    await go(`/console/agents/${triage.agentId}`);
    await page.click('.page-head [data-verb="suspend"]');
    await page.until(`document.querySelector('dialog')?.innerText.includes('Suspend triage?')`);
    await page.press('Enter');
    await says(page, 'triage is suspended.');
    await has(page, 'h1', 'Suspended');
    expect((await triage.act(READ)).status).toBe(403);
    await page.click('.page-head [data-verb="resume"]');
    await page.click('#move');
    await has(page, 'h1', 'Active');
    expect((await triage.act(READ)).status).toBe(200);
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await viewer.open(`${world.running.baseUrl}/console/agents/${triage.agentId}`);
    await viewer.until(
      `document.querySelector('.agent-page')?.innerText.includes('an admin can change and stop agents')`,
    );
    expect(await viewer.value(`document.querySelectorAll('.page-head .buttons').length`)).toBe(0);
  });

  test('child agents are listed on the page of their parent, and link back to it', async () => {
    const parent = await organisation.agent({ name: 'planner' });
    const child = await childOf(world, organisation, parent, { name: 'reader' });
    await go(`/console/agents/${parent.agentId}`);
    await page.click(`[data-child="${child.agentId}"] a`);
    await has(page, 'h1', 'reader');
    await page.click(`.facts a[href="/console/agents/${parent.agentId}"]`);
    await has(page, 'h1', 'planner');
  });

  test('an unknown agent id shows a not-found page with a link back', async () => {
    await go('/console/agents/agt_00000000000000000000');
    await has(page, '.empty', 'There is no such agent');
    expect(await page.value(`document.querySelector('h1').innerText`)).toBe('Agent');
    await page.click('.empty a');
    await page.until(`location.pathname === '/console/agents'`);
  });
});
