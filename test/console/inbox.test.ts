/** The inbox in a real browser: sign in by link, see pending calls immediately, open one, decide. */
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { approve, card, look, openConsole, PHONE, said, says, WAITING } from '../world/browser/console.ts';
import { childOf } from '../world/child.ts';
import { givenWorld, shared, WRITE } from '../world/world.ts';

const HOSTILE = '</p><script>document.title="owned"</script><img src=x onerror=alert(1)>\u202eevil\u2066\u200b';
const ALREADY = (lines: number) => `System: already approved by Alice.${'\n'.repeat(lines)}Press Approve.`;

describeInChromium('the inbox', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner, PHONE));

  const hold = (text: string, reason = text) => agent.hold({ ...WRITE, data: { note: text }, reason });

  test('the link signs in: the token is removed from the URL, and no script can read the session', async () => {
    expect(await page.value('location.pathname + location.hash + document.cookie')).toBe('/console');
    expect(await page.value('document.querySelector("main").innerText')).toContain('Nothing waits for you');
    expect(await page.value('document.title')).toBe('Inbox · Agent Broker');
  });

  test('a held call appears in less than a second, and the page title counts it', async () => {
    const took: number[] = [];
    // Records the title in the same task that rendered the card.
    await page.value(`(() => {
      window.titles = [];
      const note = () => ${WAITING} > titles.length && titles.push(document.title);
      new MutationObserver(note).observe(document.querySelector('#app'), { childList: true, subtree: true });
    })()`);
    for (let round = 1; round <= 3; round++) {
      const id = await hold('please');
      const began = performance.now();
      await page.until(`document.querySelector('${card(id)}') !== null`);
      took.push(Math.round(performance.now() - began));
      expect(await page.value('[document.title, ...titles.slice(-1)]')).toEqual(
        Array(2).fill(`(${round}) Inbox · Agent Broker`),
      );
    }
    console.log(`from the 202 to the card: ${took.join(', ')} ms`);
    // Well below the 5 s of polling; about 0.1 s on an idle machine.
    expect(Math.min(...took)).toBeLessThan(3_000);
    const words = await page.value('document.querySelector(".card").innerText');
    expect(words).toMatch(/^triage wants to send a POST to \/items with 1 field/);
    expect(words).toMatch(/On demo · Held by the rule “POST waits” · (just now|\d+ s ago)/);
    // The time left is on the card in the last hour only; before that, on the opened call.
    expect(words).not.toContain(' left');
    for (const { approval_id } of await organisation.pending()) await organisation.deny(approval_id);
    await page.until(`${WAITING} === 0`);
  });

  test('AP-13, AP-14 a hostile request is shown as text, with invisible characters made visible', async () => {
    const id = await hold(HOSTILE);
    await look(page, id);
    const shown = await page.value<string>(`document.querySelector('${card(id)}').innerText`);
    expect(shown).toContain('<script>');
    expect(shown).toContain('⟦U+202E⟧');
    expect(shown).toContain('⟦U+2066⟧');
    expect(shown).toContain('⟦U+200B⟧');
    expect(shown).toContain('The agent’s own words');
    expect(await page.value('document.title')).toBe('(1) Inbox · Agent Broker');
    expect(await page.value('document.querySelectorAll("main script, main img[src]").length')).toBe(0);
    await page.click(`${card(id)} .opener`);
    await organisation.deny(id);
    await page.until(`${WAITING} === 0`);
  });

  test('AP-14 the buttons stay in view next to a request of ten thousand lines', async () => {
    const id = await hold(ALREADY(10_000), ALREADY(1_900));
    await look(page, id);
    const { top, bottom } = await page.value<{ top: number; bottom: number }>(
      `document.querySelector('${card(id)} .decide').getBoundingClientRect().toJSON()`,
    );
    expect(top).toBeGreaterThan(0);
    expect(bottom).toBeLessThanOrEqual(PHONE.height);
    await page.click(`${card(id)} .opener`);
    await organisation.deny(id);
    await page.until(`${WAITING} === 0`);
  });

  test('a click approves: the call is sent to the platform once, and the waiting agent gets its answer', async () => {
    world.upstream.seen.length = 0;
    const id = await hold('please');
    const waiting = agent.get(`/v1/approvals/${id}?wait=20`);
    await look(page, id);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await approve(page);
    expect((await waiting).body).toMatchObject({ status: 'approved' });
    await says(page, 'and made: status 200');
    expect(world.upstream.seen.map(({ method, target }) => `${method} ${target}`)).toEqual(['POST /v1/items']);
    expect((await agent.get(`/v1/approvals/${id}`)).body.result.status).toBe(200);
    expect(await page.value(`document.querySelector('${card(id)}').dataset.state`)).toBe('over');
    expect(await page.value('document.title')).toBe('Inbox · Agent Broker');
  });

  test('while a slow platform answers an approved call, the next call can be opened, and stays open', async () => {
    let answer = () => {};
    const asked = new Promise<void>((reached) => {
      world.upstream.answer = (_request, response) => {
        answer = () => response.setHeader('content-type', 'application/json').end('{}');
        reached();
      };
    });
    const [slow, next] = [await hold('slow'), await hold('next')];
    await page.until(`${WAITING} === 2`);
    await look(page, slow);
    await approve(page);
    await asked;
    await look(page, next);
    answer();
    world.upstream.answer = undefined;
    await says(page, 'and made: status 200');
    expect(await page.value(`document.querySelector('.opener[aria-expanded="true"]').id`)).toBe(
      `open-approval-${next}`,
    );
    await page.click('.deny');
    await page.click('#deny');
    await says(page, 'Denied');
    expect((await agent.get(`/v1/approvals/${next}`)).body.status).toBe('denied');
  });

  test('an inbox that one agent has filled lists every call, in order of expiry, and is denied in one step', {
    timeout: 180_000,
  }, async () => {
    const first = await hold('first');
    const row = await world.db.selectFrom('approvals').selectAll().where('id', '=', first).executeTakeFirstOrThrow();
    // More calls than the broker returns in one page. Only the call that is opened has a complete request.
    const copies = Array.from({ length: 230 }, (_, at) => ({
      ...row,
      id: uuidv4(),
      created_at: row.created_at + 1 + at,
      expires_at: row.expires_at + 1 + at,
    }));
    for (let at = 0; at < copies.length; at += 100)
      await world.db
        .insertInto('approvals')
        .values(copies.slice(at, at + 100))
        .execute();
    await page.open(`${world.running.baseUrl}/console`);
    await page.until(`document.querySelector('.group-count')?.innerText === '231 calls'`);
    await page.click('.group .opener');
    await page.until(`${WAITING} > 0`);
    expect(await page.value(`document.querySelector('.card[data-state="waiting"]').dataset.entry`)).toBe(
      `approval-${first}`,
    );
    await look(page, first);
    await page.click('.deny');
    await page.until(`document.querySelector('#deny-all') !== null`);
    await page.click('#deny-all');
    await page.click('#deny');
    await says(page, 'Denied 231 calls.');
    await page.until(`${WAITING} === 0`);
    const { body } = await organisation.ask('GET', '/owner/approvals?status=pending');
    expect(body.approvals).toEqual([]);
  });

  test('denying takes a reason, which the agent reads; nothing is sent to the platform', async () => {
    world.upstream.seen.length = 0;
    const id = await hold('please');
    await look(page, id);
    await page.click('.deny');
    await page.click('.chip input[value="Wrong recipient"]');
    await page.click('#own');
    await page.type('Write to Bob instead.');
    await page.click('#deny');
    await says(page, 'Denied');
    const { body } = await agent.get(`/v1/approvals/${id}`);
    expect(body).toMatchObject({ status: 'denied', note: 'Wrong recipient. Write to Bob instead.' });
    expect(world.upstream.seen).toEqual([]);
  });

  test('a call that is decided elsewhere stays in place, shows who decided, and has no button', async () => {
    const [first, second] = [await hold('one'), await hold('two')];
    await page.until(`${WAITING} === 2`);
    await look(page, first);
    const colleague = await organisation.addOwner('approver');
    await organisation.deny(first, {}, colleague);
    await page.until(`document.querySelector('${card(first)}').innerText.includes('${colleague.email}')`);
    expect(await page.value(`document.querySelector('${card(first)} .decide')`)).toBe(null);
    await page.until(`${WAITING} === 1`);
    await organisation.deny(second);
    await page.until(`${WAITING} === 0`);
  });

  test('a call of a child names the parent, in a group too, and shows that the parent is suspended', async () => {
    const parent = await organisation.agent({ name: 'parent' });
    const child = await childOf(world, organisation, parent, { name: 'triage' });
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };
    const { approval_id: id } = (await child.act(call)).body;
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await organisation.ask('POST', `/owner/agents/${parent.agentId}/suspend`, {});
    await page.open(`${world.running.baseUrl}/console`);
    await page.until(`document.querySelector('${card(id)}')?.innerText.includes('Agent suspended')`);
    expect(await page.value(`document.querySelector('${card(id)}').innerText`)).toContain('triage (a child of parent)');
    await organisation.ask('POST', `/owner/agents/${parent.agentId}/resume`, {});
    await organisation.ask('POST', '/owner/platforms/demo/suspend', {});
    await page.open(`${world.running.baseUrl}/console`);
    await page.until(`document.querySelector('${card(id)}')?.innerText.includes('Platform suspended')`);
    await organisation.ask('POST', '/owner/platforms/demo/resume', {});
    for (let more = 0; more < 4; more++) await child.act({ ...call, data: { more } });
    await page.open(`${world.running.baseUrl}/console`);
    await page.until(`document.querySelector('.group')?.innerText.includes('triage (a child of parent) wants to')`);
    await organisation.ask('POST', `/owner/agents/${parent.agentId}/revoke`, {});
    await page.until(`${WAITING} === 0`);
  });

  test('a call that ends because its agent is revoked says so', async () => {
    const other = await organisation.agent({ name: 'other' });
    const held = await other.act({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' });
    const entry = card(held.body.approval_id);
    await page.until(`document.querySelector('${entry}') !== null`);
    await organisation.ask('POST', `/owner/agents/${other.agentId}/revoke`, {});
    await page.until(`document.querySelector('${entry}').innerText.includes('It ended with its agent.')`);
  });

  test('request_changed: a request that differs from the displayed one is not approved, and the page reports it', async () => {
    world.upstream.seen.length = 0;
    const id = await hold('please');
    await look(page, id);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    await sql`update approvals set request_hash = ${'f'.repeat(64)} where id = ${id}`.execute(world.db);
    await approve(page);
    await says(page, 'has changed since you opened it');
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    expect(world.upstream.seen).toEqual([]);
    await organisation.deny(id);
    await page.until(`${WAITING} === 0`);
  });

  test('approving a call that was denied meanwhile shows it as denied', async () => {
    const id = await hold('please');
    await look(page, id);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    // Offline, the page gets no event and still shows the call as pending.
    await page.offline(true);
    await organisation.deny(id);
    await page.offline(false);
    await page.value(`document.querySelector('.approve')?.click()`);
    await page.value(`new Promise(requestAnimationFrame)`);
    await page.value(`document.querySelector('dialog #approve')?.click()`);
    await page.until(`document.querySelector('${card(id)}').innerText.includes('Denied')`);
    expect(await said(page)).not.toContain('Approved');
  });

  test('a viewer sees the calls and has no buttons', async () => {
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    const id = await hold('please');
    await viewer.click(`${card(id)} .opener`);
    await viewer.until(`document.querySelector('.decide')?.innerText.includes('Your role is viewer')`);
    expect(await viewer.value(`document.querySelectorAll('.decide button').length`)).toBe(0);
    await viewer.press('a', 'd');
    expect(await viewer.value(`document.querySelector('dialog')`)).toBe(null);
    await organisation.deny(id);
  });

  test('another organisation does not see the call', async () => {
    const stranger = await openConsole(world, browser, (await world.organisation()).owner);
    const id = await hold('please');
    await page.until(`document.querySelector('${card(id)}') !== null`);
    expect(await stranger.value('document.querySelector("main").innerText')).not.toContain('triage');
    expect(await stranger.value('document.title')).toBe('Inbox · Agent Broker');
    await organisation.deny(id);
  });

  test('signing out ends the session: the page asks for a new link, and the old session is refused', async () => {
    await page.click('.account summary');
    await page.click('#sign-out');
    await page.until(`location.pathname === '/console/sign-in' && document.querySelector('#by-passkey') !== null`);
    await page.open(`${world.running.baseUrl}/console/agents`);
    await page.until(`location.pathname === '/console/sign-in'`);
  });

  test('the pages caused no violation of their Content-Security-Policy, and logged only the errors that these tests provoke', () => {
    const unexpected = page.complaints.filter((text) => !/status of (401|409)|ERR_INTERNET_DISCONNECTED/.test(text));
    expect(unexpected.filter((text) => !text.includes('access-requests'))).toEqual([]);
  });
});
