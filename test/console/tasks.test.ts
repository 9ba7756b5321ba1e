/**
 * All tasks of an owner, from an empty organisation, page by page: once with the keyboard alone, which checks each element that gets the focus,
 * and runs axe on each dialog and open state that no other file of this folder checks; in a thorough run once more with the mouse alone, which the other files use.
 */
import { expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, isLive, openConsole, says } from '../world/browser/console.ts';
import { type InputDevice, keyboard, mouse } from '../world/browser/input-device.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { thorough } from '../world/runner/thorough.ts';
import { startChannelServer } from '../world/servers/channel-server.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { givenWorld, type Organisation, shared } from '../world/world.ts';

const SECRET = 'CANARY-of-the-platform-0123456789';
const CALL = { platform: 'crm', endpoint: '/contacts', method: 'POST', scope: 'crm:write' };
const FREE = 'free:\n  "POST /contacts": [/name]\n';

describeInChromium('all tasks of an owner', () => {
  const mcp = shared(() => startMcpServer());
  const channels = shared(() => startChannelServer());
  const platform = shared(() => startUpstream());
  const world = givenWorld('sqlite', () => ({
    AGENT_BROKER_ALLOW_PRIVATE: [mcp, channels, platform].map(({ address }) => address).join(),
  }));
  const browser = shared(() => startBrowser());

  /** `look`: checks what is open now with axe; `name` is for messages. */
  type Walk = InputDevice & { organisation: Organisation; look: (name: string, within?: string) => Promise<void> };
  const there = (page: Page, selector: string, words = '') =>
    page.until(
      `document.querySelector(${JSON.stringify(selector)})?.innerText.replace(/\\s+/g, ' ').includes(${JSON.stringify(words)}) ?? false`,
    );
  const goTo = async ({ page, use }: InputDevice, place: string) => {
    await use(`nav a[href="/console${place}"]`);
    await page.until(`location.pathname === '/console${place}'`);
    await isLive(page);
  };
  const closed = (page: Page) => page.until(`document.querySelector('dialog') === null`);

  const connect = async ({ page, use, fill, choose, look }: Walk) => {
    await use('nav a[href="/console/connections"]');
    await use('#first-connection');
    await use('#own-rest');
    await fill('[data-part="address"]', 'nothing');
    await fill('[data-part="id"]', 'crm');
    await choose('[data-field="auth"]', 'header');
    await fill('[data-part="secret"]', SECRET);
    await fill('[data-field="scopes"]', 'read\n  GET /contacts\nwrite\n  POST /contacts\n  PATCH /contacts/*\n');
    await use('.elsewhere summary');
    await fill('[data-field="more"]', FREE);
    await use('#connect');
    await there(page, '#own-form [role="alert"]', 'base_url');
    await look('an API with an address that is none');
    await fill('[data-part="address"]', platform.url);
    await use('#connect');
    await there(page, '#done', 'crm is connected');
    expect(platform.seen.at(-1)?.headers['x-api-key']).toBe(SECRET);
    await use('#to-connections');
    await use('.replace');
    await page.until(`document.querySelector('dialog [data-part="secret"]') !== null`);
    await page.press('Escape');
    await closed(page);
    await use('.settings');
    await look('the settings of a connection', 'dialog');
    await page.press('Escape');
    await closed(page);
    await use('#to-gallery');
    await use('#own-mcp');
    await fill('[data-part="address"]', mcp.url);
    await fill('[data-part="id"]', 'tools');
    await fill('[data-part="secret"]', SECRET);
    await use('#connect');
    await there(page, '#done', 'tools is connected');
    await use('.tools .refresh');
    await there(page, '[data-tool="search_issues"]', 'Accepted');
    await use('[data-tool="search_issues"] .look');
    await look('a tool', 'dialog');
    await page.press('Escape');
    await closed(page);
    await use('#to-connections');
    await use('[data-connection] .remove');
    await look('removing a connection', 'dialog');
    await page.press('Escape');
    await closed(page);
  };

  const changeManifest = async (walk: Walk) => {
    const { page, use, fill, look } = walk;
    await goTo(walk, '/connections');
    await use('#to-gallery');
    await use('[data-own="crm"]');
    await use('#change-manifest');
    await page.until(`document.querySelector('[data-field="manifest"]')?.value.includes('X-Api-Key')`);
    await look('a manifest', 'dialog');
    const manifest = await page.value<string>(`document.querySelector('[data-field="manifest"]').value`);
    await fill('[data-field="manifest"]', 'kind: rest');
    await use('#look-at-changes');
    await there(page, '#manifest-wrong', 'entry.base_url');
    await fill('[data-field="manifest"]', `name: The CRM\n${manifest}`);
    await use('#look-at-changes');
    await there(page, '#manifest-changes', 'name: none → The CRM');
    await use('#save-manifest');
    await says(page, 'has version 2 of its manifest');
    await closed(page);
  };

  const writePolicy = async (walk: Walk) => {
    const { page, use, fill, look } = walk;
    await goTo(walk, '/policies');
    await use('#new-policy');
    await use('input[value="careful"]');
    await use('#begin');
    await fill('#policy-name', 'default');
    await use('#save');
    await look('making a policy', 'dialog');
    await use('#save-now');
    await says(page, 'default');
    await closed(page);
  };

  const inviteAgent = async (walk: Walk) => {
    const { page, use, fill, choose } = walk;
    await goTo(walk, '/agents');
    await use('.empty a.primary');
    await fill('#agent-name', 'triage');
    await choose('#add-platform', 'crm');
    await use('#add-grant');
    await use('input[name="crm:read"]');
    await use('#invite');
    await there(page, '#invited .command');
    await goTo(walk, '/agents');
    await use('.page-head .primary, .empty a.primary');
    await there(page, '[data-invite]', 'triage');
    expect(await page.value('document.body.innerText')).not.toContain('--invite');
    await use('[data-invite] button');
    await says(page, 'The invite for triage is revoked.');
  };

  const editGrant = async (walk: Walk, agent: TestAgent) => {
    const { page, use } = walk;
    await goTo(walk, '/agents');
    await use(`[data-agent="${agent.agentId}"] a`);
    await use('[data-grant="crm"] [data-verb="change"]');
    await page.until(`document.querySelector('dialog input[name="crm:write"]') !== null`);
    await use('dialog input[name="crm:write"]');
    await use('#save-grant');
    await says(page, 'is changed');
    await closed(page);
    await use('[data-grant="crm"] [data-verb="remove"]');
    await page.press('Escape');
    await closed(page);
    // accessible.test.ts checks the accessibility of these dialogs.
    for (const open of ['#change-policy', '#new-key', '#issue-key', '[data-verb="suspend"]']) {
      await use(open);
      await page.until(`document.querySelector('dialog') !== null && !document.querySelector('dialog .loading')`);
      await page.press('Escape');
      await closed(page);
    }
  };

  const decide = async (walk: Walk, agent: TestAgent) => {
    const { page, use, fill, look } = walk;
    await expectStatus(202, agent.act({ ...CALL, data: { name: 'Ann' } }));
    await goTo(walk, '');
    await use('.card .opener');
    await page.until(`document.querySelector('.decide .approve:enabled') !== null`);
    await use('.decide .deny');
    await look('denying', 'dialog');
    await page.press('Escape');
    await closed(page);
    await use('.decide .approve');
    await use('dialog .standing summary');
    await use('[id="standing-/name"]');
    await fill('#standing-count', '0');
    await page.until(`document.querySelector('dialog #approve').disabled`);
    await look('a standing approval of no calls', 'dialog');
    await fill('#standing-count', '3');
    await use('dialog #approve');
    await says(page, 'and made');
    expect((await agent.act({ ...CALL, data: { name: 'Bob' } })).status).toBe(200);
    await use('a[href="/console/standing-approvals"]');
    await there(page, '[data-standing]', '2 of 3 left');
    await use('[data-standing] button');
    await says(page, 'Revoked');
    expect((await agent.act({ ...CALL, data: { name: 'Cid' } })).status).toBe(202);
  };

  const keepTeam = async (walk: Walk) => {
    const { page, use, fill, look, organisation } = walk;
    await goTo(walk, '/team');
    await fill('#member-email', 'no address');
    await use('#add');
    await fill('#member-email', `ann-${organisation.id.slice(0, 8)}@acme.example`);
    await use('#add');
    await says(page, 'is added');
    const ann = `[data-member]:has([data-verb="remove"])`;
    await there(page, ann, 'Never signed in');
    await there(page, `[data-member="${organisation.owner.id}"]`, 'Signed in last');
    await use(`${ann} [data-verb="link"]`);
    await look('a sign-in link', 'dialog');
    await use('#make-link');
    await there(page, 'dialog .command', '/console/sign-in');
    await look('a link that was made', 'dialog');
    await use('#close-link');
    await closed(page);
    await use(`${ann} [data-verb="role"]`);
    await use('dialog input[value="admin"]');
    await look('a role', 'dialog');
    await use('#save-role');
    await closed(page);
    await page.until(`document.querySelector('${ann}').dataset.role === 'admin'`);
    await there(page, `[data-member="${organisation.owner.id}"]`, 'You cannot remove yourself');
    await use(`${ann} [data-verb="remove"]`);
    await look('removing a person', 'dialog');
    await use('#remove-member');
    await says(page, 'is removed');
  };

  const beTold = async (walk: Walk) => {
    const { page, use, fill, choose, look } = walk;
    await goTo(walk, '/settings');
    await use('#to-notices-page');
    await use('#add-channel');
    await choose('#channel-kind', 'webhook');
    await fill('#channel-name', 'pager');
    await use('dialog .rules > summary');
    await fill('[data-field="url"]', 'https://10.1.2.3/hook');
    await fill('[data-field="url"]', `${channels.url}/hook`);
    await use('#do-it');
    await there(page, 'dialog .command', 'whsec_');
    await look('a key that is shown once', 'dialog');
    await use('#kept');
    await use('[data-channel="pager"] .test');
    await says(page, 'accepted the test notice');
    await use('[data-channel="pager"] .remove');
    await look('removing a channel', 'dialog');
    await use('#do-it');
    await page.until(`document.querySelector('#no-channels') !== null`);
    await goTo(walk, '/settings');
    await use('#to-audit-sinks');
    await use('#add-sink');
    await fill('#sink-name', 'siem');
    await fill('[data-field="url"]', `${channels.url}/in`);
    await use('#do-it');
    await use('#kept');
    await use('[data-sink="siem"] .move');
    await look('from which row', 'dialog');
    await page.press('Escape');
    await closed(page);
    await use('[data-sink="siem"] .remove');
    await use('#do-it');
    await page.until(`document.querySelector('#no-sinks') !== null`);
  };

  const setUp = async (walk: Walk) => {
    const { page, use, fill, choose, look, organisation } = walk;
    await goTo(walk, '/settings');
    await fill('#ttl', '90');
    await choose('#deciders', 'agents_owner');
    await use('#verify');
    await use('#save-approvals');
    await says(page, 'The settings of approvals are changed.');
    const settings = (await organisation.ask('GET', '/owner/organisation')).body;
    expect(settings).toMatchObject({
      approval_ttl_seconds: 5400,
      require_user_verification: true,
      passkey_deciders: 'agents_owner',
    });
    await there(page, '.settings', 'decided with a passkey by the agent’s owner alone');
    await there(page, '.settings', 'This installation');
    await use('#publish');
    await look('publishing', 'dialog');
    await page.press('Escape');
    await closed(page);
    await use('#stop');
    await fill('#stop-why', 'A drill');
    await use('#stop-all');
    await there(page, '#all-stopped', 'A drill');
    await page.until(
      `document.querySelector('dialog') === null || document.querySelector('dialog #stop-all') !== null`,
    );
    if (await page.value(`document.querySelector('dialog') !== null`)) await page.press('Escape');
    await closed(page);
    await look('all agents are stopped');
    await use('#to-resume');
    await use('#stop-all');
    await page.until(`document.querySelector('#all-stopped') === null`);
    if (await page.value(`document.querySelector('dialog') !== null`)) await page.press('Escape');
    await closed(page);
  };

  const keepFile = async (walk: Walk) => {
    const { page, use, fill, look } = walk;
    await goTo(walk, '/settings');
    await use('#to-governance');
    await use('#take-present');
    await page.until(`document.querySelector('#governance-text').value.includes('crm')`);
    await fill('#governance-text', 'guardrails: [{ name: freeze, effect: permit }]');
    await use('#show-plan');
    await there(page, '#file-wrong', 'permit');
    await fill('#governance-text', 'guardrails: [{ name: freeze, effect: deny, methods: [DELETE] }]');
    await use('#show-plan');
    await there(page, '#changes', 'the guardrails');
    await look('what a governance file changes');
    await use('#apply');
    await look('applying a governance file', 'dialog');
    await use('#apply-now');
    await there(page, '#applied', 'In force');
    const newest = '#applies > li:first-child';
    await use(`${newest} summary`);
    await there(page, newest, 'the guardrails');
    await use(`${newest} .go-back`);
    await there(page, '#changes', 'Removed the guardrails');
    await use('#apply');
    await use('#apply-now');
    await there(page, '#applied', 'In force: 1 removed');
  };

  const lookAround = async (walk: Walk) => {
    const { page, use, fill, choose, look } = walk;
    await goTo(walk, '/activity');
    await choose('#by-result', 'allowed');
    await use('#activity summary');
    await use('#activity [open] a[href^="/console/receipt"]');
    await there(page, 'main', 'Signature');
    await goTo(walk, '/overview');
    await choose('#range', 'month');
    await page.until(`location.search === '?range=month'`);
    await goTo(walk, '/agents');
    await use('#to-clients');
    await goTo(walk, '/agents');
    await use('#to-reports');
    await goTo(walk, '/connections');
    await use('#to-people');
    await page.until(`document.querySelector('#no-issuers') !== null`);
    await use('.add summary');
    await fill('#issuer', 'https://id.acme.example');
    await fill('#audience', 'broker');
    await use('#trust');
    await use('[data-issuer] .remove');
    await look('trusting an issuer no more', 'dialog');
    await use('#distrust');
    await page.until(`document.querySelector('[data-issuer]') === null`);
    await use('.account summary');
    await look('the menu of the account', '.account');
    await use('#to-passkeys');
    await page.until(`location.pathname === '/console/passkeys'`);
    await use('.account summary');
    await use('#sign-out');
    await page.until(`location.pathname === '/console/sign-in'`);
  };

  test.each(thorough ? (['keyboard', 'mouse'] as const) : (['keyboard'] as const))(
    'from an empty organisation, with the %s alone',
    { timeout: scaledTimeout(180_000) },
    async (by) => {
      const organisation = await world.organisation();
      const page = await openConsole(world, browser, organisation.owner);
      const look = async (name: string, within?: string) => {
        await page.until(`document.querySelector('${within ?? 'main'}') !== null`);
        if (by === 'mouse') return;
        await expectAccessible(page, name, within);
        await page.resize(DESKTOP);
      };
      const walk: Walk = { ...(by === 'keyboard' ? keyboard : mouse)(page), organisation, look };
      await connect(walk);
      await changeManifest(walk);
      await writePolicy(walk);
      await inviteAgent(walk);
      const policy = (await organisation.ask('GET', '/owner/policies')).body.policies[0].id;
      const agent = await organisation.agent({ policy, grants: { crm: { scopeList: ['crm:read'] } } });
      await editGrant(walk, agent);
      await decide(walk, agent);
      await keepTeam(walk);
      await beTold(walk);
      await setUp(walk);
      await keepFile(walk);
      await lookAround(walk);
      expect(page.complaints.filter((one) => !/40[013]|400/.test(one))).toEqual([]);
    },
  );
});
