/** The console in a real browser: sign in by link, look at what waits, decide. */
import { beforeAll, describe, expect, test } from 'vitest';
import { signInLink } from '../broker/identity/sign-in-link.ts';
import type { TestAgent } from './world/agent.ts';
import { openPage, type Page, withoutChromium } from './world/chromium.ts';
import { type Organisation, startWorld, type World } from './world/world.ts';

const HOSTILE = '</p><script>document.title="owned"</script>\u202eevil';

describe.skipIf(withoutChromium)(`the console${withoutChromium ? ` (skipped: ${withoutChromium})` : ''}`, () => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let page: Page;

  beforeAll(async () => {
    world = await startWorld();
    organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent({ name: 'triage' });
    page = await openPage({ width: 360, height: 740 });
    await page.open((await signInLink(world.running.broker, organisation.owner)).url);
    await page.until(`location.pathname === '/console' && document.querySelector('#agents .row') !== null`);
  });

  const hold = async (text: string) => {
    const held = await agent.act({
      platform: 'demo',
      endpoint: '/items',
      method: 'POST',
      scope: 'demo:write',
      data: { note: text },
      reason: text,
    });
    expect(held.status).toBe(202);
    return held.body.approval_id as string;
  };

  test('the link signs in once: the token is out of the address, and no script can read the session', async () => {
    expect(await page.value('location.hash + document.cookie')).toBe('');
    expect(await page.value('document.querySelector("#agents").innerText')).toContain('triage');
  });

  test('AP-13, AP-14 a hostile request is shown as text, with what is invisible made visible', async () => {
    await hold(HOSTILE);
    await page.until(`document.querySelector('#held button') !== null`);
    await page.value(`document.querySelector('#held button').click()`);
    await page.until(`document.querySelector('#held .approve') !== null`);
    const shown = await page.value<string>('document.querySelector("#held").innerText');
    expect(shown).toContain('<script>');
    expect(shown).toContain('⟦U+202E⟧');
    expect(shown).toContain('In the agent’s own words');
    expect(await page.value('document.title')).toContain('Console');
    expect(await page.value('document.querySelectorAll("#held script, #held p p").length')).toBe(0);
  });

  test('a click approves: the platform sees the call once, and the waiting agent gets its answer', async () => {
    world.upstream.seen.length = 0;
    const [held] = (await organisation.ask('GET', '/owner/approvals?status=pending')).body.approvals;
    const waiting = agent.get(`/v1/approvals/${held.approval_id}?wait=20`);
    await page.value(`document.querySelector('#held .approve').click()`);
    const answer = await waiting;
    expect(answer.body).toMatchObject({ status: 'approved' });
    await page.until(`document.querySelector('#held').innerText.includes('Nothing waits')`);
    expect(world.upstream.seen.map(({ method, target }) => `${method} ${target}`)).toEqual(['POST /v1/items']);
    const done = await agent.get(`/v1/approvals/${held.approval_id}`);
    expect(done.body.result.status).toBe(200);
    expect(await page.value('document.querySelector("#notice").textContent')).toContain('Approved and made');
  });

  test('a click denies: nothing is ever sent', async () => {
    world.upstream.seen.length = 0;
    const id = await hold('please');
    await page.until(`document.querySelector('#held button') !== null`);
    await page.value(`document.querySelector('#held button').click()`);
    await page.until(`document.querySelector('#held .deny') !== null`);
    await page.value(`document.querySelector('#held .deny').click()`);
    await page.until(`document.querySelector('#notice').textContent.startsWith('Denied')`);
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('denied');
    expect(world.upstream.seen).toEqual([]);
  });

  test('at 360 px nothing is wider than the window, and the page kept to its own policy', async () => {
    expect(await page.value('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
    expect(page.complaints).toEqual([]);
  });

  test('AP-16 no page of the console can be framed', async () => {
    const { headers } = await fetch(`${world.running.baseUrl}/console`);
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('content-security-policy')).not.toContain('unsafe');
  });

  test('signing out ends it: the page asks for a new link', async () => {
    await page.value(`document.querySelector('#sign-out').click()`);
    await page.until(`location.pathname === '/console/sign-in' && document.body.innerText.includes('owner link')`);
  });
});
