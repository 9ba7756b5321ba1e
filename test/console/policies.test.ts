/** Policies and guardrails in the console: created, changed and saved, by mouse and by keyboard, with concurrent changes by another owner. */
import { expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { goTo, isLive, openConsole, says } from '../world/browser/console.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

const DELETES = { name: 'deletes-wait', effect: 'require_approval', methods: ['DELETE'] };

describeInChromium('policies in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage', policy: null }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const has = (words: string) =>
    page.until(`document.querySelector('main').innerText.includes(${JSON.stringify(words)})`);
  const there = (selector: string) => page.until(`document.querySelector(${JSON.stringify(selector)}) !== null`);
  const policy = async (name: string) => (await organisation.ask('GET', `/owner/policies/${name}`)).body;

  test('the navigation links to the page; without policies it explains what to do; a policy is created by mouse alone', async () => {
    await page.click('nav a[href="/console/policies"]');
    await page.until(`location.pathname === '/console/policies' && document.title.includes('Policies')`);
    await has('There are no policies yet');
    await has('only the policies decide');
    await page.click('#new-policy');
    await page.click('input[value="read-only"]');
    await page.click('#begin');
    await there('#policy-name');
    // Adds another rule, from a starting point.
    await page.click('#add-rule');
    await page.click('[data-rule="2"] input[value="deny"]');
    await page.click('[data-rule="2"] [data-field="scopes"] input');
    await page.click('[data-rule="2"] [data-value="demo:delete"]');
    await page.click('[data-rule="2"] .words summary');
    await page.click('[data-rule="2"] [data-insert="first_time.operation"]');
    await page.click('#save');
    await page.click('#save-now');
    await says(page, 'read-only is saved: version 1 is in force.');
    await page.until(`location.pathname === '/console/policies/read-only'`);
    await has('Every call with demo:delete is denied if first_time.operation.');
    expect((await policy('read-only')).rules).toEqual([
      { name: 'reads', effect: 'allow', methods: ['GET'] },
      { name: 'reads sent as POST', effect: 'allow', scopes: ['*.read', '*:read'], methods: ['POST'] },
      { effect: 'deny', scopes: ['demo:delete'], when: 'first_time.operation' },
    ]);
  });

  test('an agent is assigned to the policy on its page, and is listed there', async () => {
    expect(agent.agentId).toBeDefined();
    await page.click('#assign');
    await page.click(`[data-agent="${agent.agentId}"]`);
    await page.click('#put-under');
    await says(page, 'One agent is under read-only');
    await page.until(`document.querySelector('#under')?.innerText.includes('triage')`);
    expect((await policy('read-only')).agents).toBe(1);
  });

  test('an error is shown at its field, and the entered text is kept', async () => {
    await page.click('#edit');
    await page.click('[data-rule="2"] .rule-opener');
    await page.click('[data-rule="2"] [data-field="when"] textarea');
    await page.press('Control+a');
    await page.type('request.body.amount >');
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('[data-rule="2"] [data-field="when"] .wrong') !== null`);
    // Also after a reload.
    await page.value('location.reload()');
    await isLive(page);
    await there('#restored');
    expect(page.asked).toEqual(['beforeunload']);
    await page.click('[data-rule="2"] .rule-opener');
    await page.until(`document.querySelector('[data-rule="2"] textarea').value === 'request.body.amount >'`);
  });

  test('a concurrent change by another owner is shown, and both changes are merged', async () => {
    await page.click('[data-rule="2"] [data-field="when"] textarea');
    await page.press('Control+a');
    await page.type('first_time.operation || scope == "demo:delete"');
    const theirs = (await policy('read-only')).rules;
    const other = await organisation.addOwner('admin');
    const saved = await organisation.ask(
      'POST',
      '/owner/policies/read-only',
      { rules: [...theirs, DELETES], version: 1 },
      other,
    );
    expect(saved.status, saved.text).toBe(200);
    await page.click('#save');
    await page.click('#save-now');
    await page.until(`document.querySelector('#conflict')?.innerText.includes(${JSON.stringify(other.email)})`);
    expect(await page.value<string>(`document.querySelector('#conflict').innerText`)).toContain('deletes-wait');
    await page.click('#put-together');
    await page.click('#save');
    await page.click('#save-now');
    await says(page, 'version 3 is in force');
    const { rules } = await policy('read-only');
    expect(rules).toContainEqual(DELETES);
    expect(rules).toContainEqual({
      effect: 'deny',
      scopes: ['demo:delete'],
      when: 'first_time.operation || scope == "demo:delete"',
    });
    expect(rules).toHaveLength(4);
  });

  test('versions list who changed what', async () => {
    await page.until(`document.querySelectorAll('#versions .row').length === 3`);
    await page.click('#versions .row:nth-child(2) summary');
    await page.until(`document.querySelector('#versions .row:nth-child(2) .diff')?.innerText.includes('deletes-wait')`);
    const told = await page.value<string>(`document.querySelector('#versions').innerText`);
    expect(told).toContain('with the API');
    expect(told).toContain('in the console');
    expect(page.complaints.filter((one) => !one.includes('409') && !one.includes('400'))).toEqual([]);
  });

  test('an unknown policy has a not-found message; a URL that cannot be a policy id is a 404 page', async () => {
    await go('/console/policies/nobody');
    await has('There is no such policy');
    expect(await page.value(`document.querySelector('h1').innerText`)).toBe('Policy');
    const at = (path: string, accept: string) => fetch(world.running.baseUrl + path, { headers: { accept } });
    for (const wrong of ['%3Cimg%3E', 'a'.repeat(65)]) {
      const answer = await at(`/console/policies/${wrong}`, 'text/html');
      expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
      expect((await at(`/console/policies/${wrong}`, 'application/json')).status).toBe(404);
    }
    // The static files of the page are below the same path.
    expect((await at('/console/policies/policies.css', 'text/css')).headers.get('content-type')).toMatch('text/css');
  });

  test('by keyboard alone: a rule is changed, tried on past calls and on one call, and saved with the result of the trial', async () => {
    for (const call of [READ, READ, WRITE]) await agent.act(call);
    // Reloaded, so that the focus starts at the top of the page.
    await page.open(`${world.running.baseUrl}/console/policies/read-only?edit`);
    await isLive(page);
    const focus = async (selector: string) => {
      for (let i = 0; i < 120; i++) {
        if (await page.value(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
        await page.press('Tab');
      }
      throw new Error(`Tab does not lead to ${selector}`);
    };
    await focus('#rule-1');
    await page.press('Enter');
    // Arrow keys select the effect, and an option of the list.
    await focus('[data-rule="0"] [data-field="effect"] input');
    await page.press('ArrowRight');
    await focus('[data-rule="0"] [data-field="endpoints"] input');
    await page.press('ArrowDown', 'ArrowDown', 'Enter', 'Escape');
    await focus('[data-rule="0"] textarea');
    await page.type('first_time.op');
    await page.press('ArrowDown', 'Enter');
    await page.until(`document.querySelector('[data-rule="0"] textarea').value === 'first_time.operation'`);
    await page.press('Control+a', 'Backspace');
    await focus('[data-days="7"]');
    await page.press('Enter');
    await page.until(`document.querySelector('#tried .counts')?.dataset.calls === '3'`);
    await focus('#try-endpoint');
    await page.press('Control+a');
    await page.type('/items/7');
    await focus('#try-one');
    await page.press('Enter');
    await page.until(`document.querySelectorAll('#one-result .verdict').length === 2`);
    expect(
      await page.value(`[...document.querySelectorAll('#one-result .verdict')].map((one) => one.dataset.decision)`),
    ).toEqual(['allow', 'require_approval']);
    await focus('#save');
    await page.press('Enter');
    await page.until(`document.querySelector('dialog #last-try')?.innerText.includes('Of 3 calls in the last 7 days')`);
    await focus('#save-now');
    await page.press('Enter');
    await says(page, 'version 4 is in force');
    expect((await policy('read-only')).rules[0]).toEqual({
      name: 'reads',
      effect: 'require_approval',
      methods: ['GET'],
      endpoints: ['/items/*'],
    });
  });
});
