/** Access requests in the console's inbox, and the roles that may not approve them. */
import { beforeAll, expect, test, vi } from 'vitest';
import { listGrants, putGrant } from '../../broker/store/agents.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { approve, card, isLive, look, openConsole, says, WAITING } from '../world/browser/console.ts';
import { childOf } from '../world/child.ts';
import { givenWorld, shared } from '../world/world.ts';

const PATCH = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { title: 'x' } };

describeInChromium('access requests in the console', () => {
  let agent: TestAgent;
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    const policy = await organisation.policy([{ effect: 'allow' }]);
    agent = await organisation.agent({ name: 'triage', policy, grants: { demo: { scopeList: ['demo:read'] } } });
  });
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  /** Sends an access request. Returns the URL to poll and the selector of its card. */
  async function ask(body: Record<string, unknown> = {}) {
    const asked = await agent.post('/v1/access-request', { platform: 'demo', scope: 'demo:write', ...body });
    expect(asked.status, asked.text).toBe(202);
    const { access_requests } = (await organisation.ask('GET', '/owner/access-requests?status=pending')).body;
    const id = access_requests[0].request_id as string;
    return { id, poll: asked.body.poll_url as string, card: `[data-entry="access-${id}"]` };
  }
  const open = async (on: Page, selector: string) => {
    await on.click(`${selector} .opener`);
    await on.until(`document.querySelector('${selector} .decide') !== null`);
  };

  test('a request of a child names the parent, closed and opened', async () => {
    const parent = await organisation.agent({ name: 'parent' });
    const child = await childOf(world, organisation, parent, {
      name: 'triage',
      grants: [{ platform: 'demo', scopes: ['demo:read'] }],
    });
    await expectStatus(202, child.post('/v1/access-request', { platform: 'demo', scope: 'demo:write' }));
    const [{ request_id: id }] = (await organisation.ask('GET', '/owner/access-requests?status=pending')).body
      .access_requests;
    const its = `[data-entry="access-${id}"]`;
    await open(page, its);
    expect(await page.value(`document.querySelector('${its}').innerText`)).toMatch(
      /triage \(a child of parent\) asks for.*Agent\n+triage agt_\w+, a child of parent/s,
    );
    await organisation.ask('POST', `/owner/access-requests/${id}/deny`, {});
    await page.until(`${WAITING} === 0`);
  });

  test('a request appears immediately with the requested scopes selected; after approval the next call is allowed', async () => {
    expect((await agent.act(PATCH)).status).toBe(403);
    const asked = await ask({ reason: '<b>to rename</b>\u202e' });
    await open(page, asked.card);
    const shown = await page.value<string>(`document.querySelector('${asked.card}').innerText`);
    expect(shown).toMatch(/^triage asks for demo:write on demo/);
    expect(shown).toContain('<b>to rename</b>⟦U+202E⟧');
    expect(shown).toContain('It is not granted');
    expect(
      await page.value(
        `[...document.querySelectorAll('.terms input:checked')].map((one) => one.parentNode.innerText.trim())`,
      ),
    ).toEqual(['demo:write']);
    const lasts = await page.value(`document.querySelector('#lasts').selectedOptions[0].text`);
    expect(lasts).toBe('As long as the grant lasts now');
    expect(shown).toContain('Waits until');
    const waiting = agent.get(`${asked.poll}?wait=20`);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await page.click('.decide .approve');
    await page.until(`document.querySelector('dialog')?.innerText.includes('It gets demo:write')`);
    expect((await agent.get(asked.poll)).body.status, 'a click asks once more').toBe('pending');
    await page.click('dialog #approve');
    expect((await waiting).body.status).toBe('approved');
    await says(page, 'Granted');
    expect((await agent.act(PATCH)).status).toBe(200);
  });

  test('the grant has the scopes, the expiry and the approval of every call that the owner chose', async () => {
    const asked = await ask({ scope: 'demo:delete' });
    await open(page, asked.card);
    await page.value(`(() => {
        const choose = (selector, value) => {
          const found = document.querySelector(selector);
          found.value = value;
          found.dispatchEvent(new Event('change', { bubbles: true }));
        };
        choose('#lasts', '3600');
      })()`);
    await page.click('.terms > .choice input');
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await approve(page);
    const decided = async () => {
      const { body } = await organisation.ask('GET', `/owner/access-requests/${asked.id}`);
      return body.granted !== null && body;
    };
    const body = await vi.waitUntil(decided, { timeout: 10_000, interval: 20 });
    await says(page, 'Granted');
    expect(body.granted).toEqual(['demo:delete']);
    expect(body.grants[0]).toMatchObject({ require_approval: true, scopes: expect.arrayContaining(['demo:delete']) });
    const left = Date.parse(body.grants[0].expires_at) - Date.now();
    expect(left).toBeGreaterThan(3_000_000);
    expect(left).toBeLessThanOrEqual(3_600_000);
  });

  test('a request for a whole platform cannot be approved before a scope is chosen; approving by key asks for confirmation', async () => {
    await organisation.platform({
      id: 'crm',
      manifest: { scopes: { 'crm:read': ['GET /a'], 'crm:write': ['POST /a'] } },
    });
    const asked = await ask({ platform: 'crm', scope: undefined });
    await open(page, asked.card);
    // The default lifetime of a new grant.
    expect(await page.value(`document.querySelector('#lasts').selectedOptions[0].text`)).toBe('30 days');
    await page.press('a');
    await says(page, 'cannot be approved yet');
    expect(await page.value(`document.querySelector('.approve').disabled`)).toBe(true);
    await page.click('.more-scopes input');
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await page.press('a');
    await page.until(`document.querySelector('dialog')?.innerText.includes('It gets crm:read')`);
    await page.press('Enter');
    await says(page, 'Granted');
    expect((await organisation.ask('GET', `/owner/access-requests/${asked.id}`)).body.granted).toEqual(['crm:read']);
  });

  test('where calls must name a connection, a request cannot be approved before one is chosen', async () => {
    await organisation.platform({
      id: 'desk',
      manifest: { scopes: { 'desk:read': ['GET /a'], 'desk:write': ['POST /a'] } },
    });
    const [grant] = await listGrants(world.db, organisation.id, agent.id);
    const ids = [];
    for (let i = 0; i < 2; i++) {
      const id = await organisation.connection('desk', { isDefault: false });
      const own = { id: crypto.randomUUID(), platform_id: 'desk', connection_id: id, scopes: '["desk:read"]' };
      await putGrant(world.db, { ...grant!, ...own });
      ids.push(id);
    }
    const asked = await ask({ platform: 'desk', scope: 'desk:write' });
    await open(page, asked.card);
    await page.press('a');
    await says(page, 'cannot be approved yet');
    expect(await page.value(`document.querySelector('.approve').disabled`)).toBe(true);
    expect(await page.value(`document.querySelector('.decide').innerText`)).toContain('Choose the connection');
    await page.value(`(() => {
        const found = document.querySelector('#connection');
        found.value = ${JSON.stringify(ids[1])};
        found.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await approve(page);
    await says(page, 'Granted');
    const { body } = await organisation.ask('GET', `/owner/access-requests/${asked.id}`);
    expect(body.grants.map((one: { scopes: string[] }) => one.scopes.length).toSorted()).toEqual([1, 2]);
    const gained = body.grants.find((one: { scopes: string[] }) => one.scopes.includes('desk:write'));
    expect(gained.connection.connection_id).toBe(ids[1]);
  });

  test('denying a request gives the agent the reason', async () => {
    const asked = await ask({ platform: 'crm', scope: 'crm:write' });
    await open(page, asked.card);
    await page.press('d');
    await page.click('.chip input[value="Too much access: ask for less"]');
    await page.click('#deny');
    await says(page, 'Denied');
    expect((await agent.get(asked.poll)).body).toMatchObject({
      status: 'denied',
      note: 'Too much access: ask for less',
    });
  });

  test('a request that ends because its agent is revoked says so', async () => {
    const other = await organisation.agent({ name: 'other', grants: { demo: { scopeList: ['demo:read'] } } });
    const asked = await other.request('POST', '/v1/access-request', {
      body: JSON.stringify({ platform: 'demo', scope: 'demo:write' }),
      headers: { 'content-type': 'application/json' },
    });
    expect(asked.status, asked.text).toBe(202);
    const { access_requests } = (await organisation.ask('GET', '/owner/access-requests?status=pending')).body;
    const card = `[data-entry="access-${access_requests[0].request_id}"]`;
    await page.until(`document.querySelector('${card}') !== null`);
    await organisation.ask('POST', `/owner/agents/${other.agentId}/revoke`, {});
    await page.until(`document.querySelector('${card}').innerText.includes('It ended with its agent.')`);
    await page.until(`${WAITING} === 0`);
  });

  test('an approver may deny but not approve, and the page gives the reason', async () => {
    const approver = await openConsole(world, browser, await organisation.addOwner('approver'));
    const asked = await ask({ platform: 'crm', scope: 'crm:write' });
    await open(approver, asked.card);
    expect(await approver.value(`document.querySelector('.decide').innerText`)).toContain('An admin can approve this');
    expect(await approver.value(`document.querySelector('.decide .approve')`)).toBe(null);
    await approver.click('.deny');
    await approver.click('#deny');
    await says(approver, 'Denied');
    await page.until(`${WAITING} === 0`);
  });

  test('an approver’s passkey approves a call of somebody else’s agent', async () => {
    const colleague = await organisation.addOwner('approver');
    const theirs = await openConsole(world, browser, colleague);
    await theirs.authenticator();
    await theirs.open(`${world.running.baseUrl}/console/passkeys`);
    await theirs.click('.enrol button');
    await theirs.until(`document.querySelector('#passkeys') !== null`);
    const holding = await organisation.agent({ name: 'holding' });
    const { body } = await holding.act({ ...PATCH, endpoint: '/items', method: 'POST' });
    await theirs.open(`${world.running.baseUrl}/console`);
    await isLive(theirs);
    await look(theirs, body.approval_id);
    await theirs.click(`${card(body.approval_id)} .passkey`);
    const status = async () => (await holding.get(`/v1/approvals/${body.approval_id}`)).body.status;
    await expect.poll(status).toBe('approved');
  });

  test('the pages caused no violation of their Content-Security-Policy', () => {
    expect(page.complaints).toEqual([]);
  });
});
