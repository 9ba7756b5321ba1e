/** Slow and failing answers of the broker, in a real browser: the console says what happened, and loses nothing that was entered. */
import { expect, onTestFinished, test } from 'vitest';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { card, choose, goTo, has, look, openConsole, said, says, write } from '../world/browser/console.ts';
import { fresh, givenWorld, shared } from '../world/world.ts';

const UNAVAILABLE = { error: 'audit_unavailable', detail: 'The audit cannot be written now. Try again in a moment.' };

/** Delays the answers to requests of this method and path by `ms`, and answers `status` with `body` if they are given. */
const answerWith = (
  page: Page,
  method: string,
  path: string,
  { ms = 0, status, body }: { ms?: number; status?: number; body?: object },
) =>
  page.value(`(() => {
    window.whole ??= window.fetch;
    window.fetch = async (asked, options) => {
      if ((options?.method ?? 'GET') !== ${JSON.stringify(method)} || !String(asked).startsWith(${JSON.stringify(path)})) return window.whole(asked, options);
      await new Promise((over) => setTimeout(over, ${ms}));
      return ${status === undefined ? 'window.whole(asked, options)' : `Response.json(${JSON.stringify(body)}, { status: ${status} })`};
    };
  })()`);
const answerAgain = (page: Page) => page.value('{ window.fetch = window.whole; }');

describeInChromium('slow and failing answers', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = fresh(() => openConsole(world, browser, organisation.owner));
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  const hold = (by = agent) => by.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' });

  test('a sign-out that the broker refuses stays on the page, and says that the session has not ended', async () => {
    await answerWith(page, 'POST', '/owner/sign-out', { status: 503, body: UNAVAILABLE });
    await page.click('.account summary');
    await page.click('#sign-out');
    await says(page, 'You may still be signed in');
    expect(await said(page)).toContain(UNAVAILABLE.detail);
    expect(await page.value('location.pathname')).toBe('/console');
    await answerAgain(page);
    await page.click('#sign-out');
    await page.until(`location.pathname === '/console/sign-in'`);
  });

  test('a page whose answers take longer than its interval is shown', async () => {
    await answerWith(page, 'GET', '/owner/invites', { ms: 4_000 });
    const invite = await organisation.ask('POST', '/owner/invites', { agent_name: 'late', grants: [] });
    expect(invite.status, JSON.stringify(invite.body)).toBe(200);
    await go('/console/agents/new');
    await has(page, 'main', 'Open invites');
  });

  test('a dialog that stops all agents never resumes them because another admin was first', async () => {
    await page.click('#stop');
    await write(page, '#stop-why', 'Something is wrong');
    await organisation.ask('POST', '/owner/agents/suspend-all', {});
    await page.until(`document.querySelector('#all-stopped') !== null`, 20_000);
    await has(page, 'dialog', 'have been stopped meanwhile');
    expect(await page.value(`document.querySelector('#stop-all')?.disabled ?? true`)).toBe(true);
    await page.press('Enter');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect((await organisation.ask('GET', '/owner/organisation')).body.agents_stopped).not.toBeNull();
    await page.click('#to-resume');
    await page.click('#stop-all');
    await page.until(`document.querySelector('#all-stopped') === null`);
  });

  test('a note that was written for a decision is still there after the decision failed', async () => {
    const id = await hold();
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await look(page, id);
    await answerWith(page, 'POST', `/owner/approvals/${id}/deny`, { status: 503, body: UNAVAILABLE });
    await page.click('.decide .deny');
    await page.until(`document.querySelector('dialog #own') !== null`);
    await write(page, 'dialog #own', 'Ask again on Monday');
    await page.click('dialog #deny');
    await says(page, UNAVAILABLE.detail);
    await answerAgain(page);
    await page.click('.decide .deny');
    await page.until(`document.querySelector('dialog #own')?.value === 'Ask again on Monday'`);
    await page.click('dialog #deny');
    await page.until(`document.querySelector('${card(id)}')?.dataset.state !== 'waiting'`);
    expect((await organisation.ask('GET', `/owner/approvals/${id}`)).body.note).toBe('Ask again on Monday');
  });

  test('terms of a standing approval that were written are still there after the approval failed', async () => {
    const refunder = await organisation.agent({ name: 'refunder' });
    const id = await hold(refunder);
    const fill = async () => {
      await page.click('dialog .standing summary');
      await page.until(`document.querySelector('#standing-count') !== null`);
      await write(page, '#standing-count', '7');
      await choose(page, '#standing-span', '604800');
    };
    const isFilled = `document.querySelector('#standing-count')?.value === '7' && document.querySelector('#standing-span').value === '604800'`;
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await look(page, id);
    await answerWith(page, 'POST', `/owner/approvals/${id}/approve`, { status: 503, body: UNAVAILABLE });
    await page.click('.decide .approve');
    await fill();
    await page.click('dialog #approve');
    await says(page, UNAVAILABLE.detail);
    await page.click('.decide .approve');
    await page.until(isFilled);
    // The page of the link keeps them, too.
    await page.open(`${world.running.baseUrl}/approve/${id}`);
    await answerWith(page, 'POST', `/owner/approvals/${id}/approve`, { status: 503, body: UNAVAILABLE });
    await page.until(`document.querySelector('.decide button.primary:enabled') !== null`);
    await page.click('.decide button.primary');
    await fill();
    await page.click('dialog #approve');
    await has(page, '.decide', UNAVAILABLE.detail);
    await answerAgain(page);
    await page.click('.decide button.primary');
    await page.until(isFilled);
    await page.until(`!document.querySelector('dialog #approve').disabled`);
    await page.click('dialog #approve');
    await page.until(`document.body.innerText.includes('The call was made')`);
    const { body } = await organisation.ask('GET', `/owner/standing-approvals?agent=${refunder.agentId}`);
    expect(body.standing_approvals).toMatchObject([{ count: 7 }]);
  });

  test('a change whose answer does not arrive ends after two minutes, and says that it may have been made', async () => {
    const id = (await organisation.agent({ name: 'mute' })).agentId;
    await go(`/console/agents/${id}`);
    await page.value(`(() => {
      window.limits = [];
      AbortSignal.timeout = (ms) => { window.limits.push(ms); return AbortSignal.abort(); };
    })()`);
    await page.click('[data-verb="suspend"]');
    await page.click('dialog [type="submit"]');
    await has(
      page,
      'dialog',
      'Your change may have been made: reload the page, or look at the activity, before you repeat it.',
    );
    expect(await page.value('window.limits')).toContain(120_000);
  });

  test.each([
    ['a static key', '#issue-key', '#issue', 'static-keys'],
    ['a token for a new key', '#new-key', '#make-token', 'bootstrap-token'],
  ])('%s whose dialog was closed meanwhile is shown when it arrives', async (_, opens, makes, path) => {
    const id = (await organisation.agent({ name: 'tool' })).agentId;
    await answerWith(page, 'POST', `/owner/agents/${id}/${path}`, { ms: 1_000 });
    await go(`/console/agents/${id}`);
    await page.click(opens);
    if (opens === '#issue-key') await write(page, '#key-label', 'SDK');
    await page.click(makes);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await has(page, 'dialog', 'shown only once');
  });

  test('a static key whose page was left meanwhile is reported as lost', async () => {
    const id = (await organisation.agent({ name: 'left' })).agentId;
    await answerWith(page, 'POST', `/owner/agents/${id}/static-keys`, { ms: 1_000 });
    await go(`/console/agents/${id}`);
    await page.click('#issue-key');
    await write(page, '#key-label', 'SDK');
    await page.click('#issue');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await page.value(`history.pushState(null, '', '/console/team'), dispatchEvent(new PopStateEvent('popstate'))`);
    await says(page, 'cannot be shown any more. Revoke it, and issue another one.');
  });

  test.each([
    ['/console/activity', '/owner/audit?', '#activity'],
    ['/console/reports', '/owner/diagnostics?', '#reports'],
    ['/console/standing-approvals', '/owner/standing-approvals?', '#standing-approvals'],
  ])('a failed request for older rows of %s is shown, and can be repeated', async (path, api, list) => {
    const rows = `document.querySelectorAll('${list} > .row').length`;
    await page.value(`(() => {
      const whole = window.fetch;
      window.fetch = async (asked, options) => {
        if (!String(asked).startsWith('${api}')) return whole(asked, options);
        if (String(asked).includes('before=') && window.fails) return Response.json(${JSON.stringify(UNAVAILABLE)}, { status: 503 });
        const answer = await (await whole(asked, options)).json();
        // Every page is followed by another one.
        return Response.json({ ...answer, next: crypto.randomUUID() });
      };
      window.fails = true;
    })()`);
    await organisation.ask('POST', '/owner/invites', { agent_name: 'a row', grants: [] });
    await agent.post('/v1/agents/self/diagnostics', { message: 'odd' });
    const other = await organisation.agent({ name: 'other' });
    await organisation.approve(await hold(other), { standing: { count: 2, for_seconds: 600 } });
    await go(path);
    await page.click('#older');
    await has(page, 'main', UNAVAILABLE.detail);
    await page.until(`!document.querySelector('#older').disabled`);
    await page.value('{ window.fails = false; }');
    await page.click('#older');
    await page.until(`!document.querySelector('main').innerText.includes(${JSON.stringify(UNAVAILABLE.detail)})`);
    expect(await page.value<number>(rows)).toBeGreaterThan(0);
  });

  test('a refused secret that cannot be removed again is reported as stored, together with why it was refused', async () => {
    world.upstream.answer = (_, response) => response.writeHead(401).end();
    onTestFinished(() => {
      world.upstream.answer = undefined;
    });
    await answerWith(page, 'DELETE', '/owner/connections/', { status: 503, body: UNAVAILABLE });
    await go('/console/connections/new');
    await page.click('[data-builtin="npm"]');
    await page.click('.elsewhere summary');
    await write(page, '[data-part="address"]', `${world.upstream.url}/npm`);
    await write(page, '[data-part="secret"]', 'npm_0123456789abcdef');
    await page.click('#connect');
    await has(page, '#refused', 'look under Connections, and remove the connection “npm” and the platform “npm”');
    expect(await page.value(`document.querySelector('#refused').innerText`)).not.toContain('Nothing was stored');
  });

  test('a secret that was refused after its dialog was closed is reported as not replaced', async () => {
    world.upstream.answer = (_, response) => response.writeHead(401).end();
    onTestFinished(() => {
      world.upstream.answer = undefined;
    });
    await answerWith(page, 'POST', '/owner/connections', { ms: 1_000 });
    await go('/console/connections');
    await page.click('#connections .replace');
    await write(page, 'dialog [data-part="secret"]', 'CANARY-0123456789abcdef');
    await page.click('#replace');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await says(page, 'still uses the old secret');
  });

  test('the failure of an action whose dialog was closed meanwhile is shown', async () => {
    const id = (await organisation.agent({ name: 'slow' })).agentId;
    await answerWith(page, 'POST', `/owner/agents/${id}/suspend`, { ms: 1_000, status: 503, body: UNAVAILABLE });
    await go(`/console/agents/${id}`);
    await page.click('[data-verb="suspend"]');
    await page.click('dialog [type="submit"]');
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    await says(page, UNAVAILABLE.detail);
  });

  test('the failure to save rules and to correct a call is shown, also when the dialog was closed meanwhile', async () => {
    const rules = [{ effect: 'allow', methods: ['GET'] }];
    const { id } = (await organisation.ask('POST', '/owner/policies', { name: 'slow', rules })).body;
    const failing = (method: string, path: string) =>
      answerWith(page, method, path, { ms: 1_000, status: 503, body: UNAVAILABLE });
    const closed = async () => {
      await page.press('Escape');
      await page.until(`document.querySelector('dialog') === null`);
      await says(page, UNAVAILABLE.detail);
      await page.click('#said button');
    };
    await failing('POST', `/owner/policies/${id}`);
    await go('/console/policies/slow?edit');
    await page.click('input[value="yaml"]');
    await page.until(`document.querySelector('#rules-text') !== null`);
    await page.click('#rules-text');
    await page.press('Control+a');
    await page.type('- effect: deny\n');
    await page.click('#save');
    await page.click('#save-now');
    await closed();
    await page.value('sessionStorage.clear()');
    const held = await hold();
    await page.open(`${world.running.baseUrl}/console`);
    await page.until(`document.querySelector('${card(held)}') !== null`);
    await failing('POST', `/owner/approvals/${held}/correct`);
    await look(page, held);
    await page.click('.correct button');
    await write(page, '#corrected-endpoint', '/items?other');
    await page.click('#save-correction');
    await closed();
  });

  test('a double click on the button that stops a platform does not resume it', async () => {
    const demo = '[data-platform="demo"]';
    const button = `document.querySelector('${demo} button')`;
    await page.click('#stop');
    await page.until(`${button} !== null`);
    await page.value(`(() => {
      window.whole ??= window.fetch;
      window.posted = [];
      window.fetch = (asked, options) => {
        if (options?.method === 'POST') window.posted.push(String(asked));
        return window.whole(asked, options);
      };
      const changed = new MutationObserver(() => {
        if (!${button}.innerText.startsWith('Resume')) return;
        changed.disconnect();
        // The second click comes when the first one has been answered.
        setTimeout(() => {
          ${button}.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, detail: 2 }));
          window.clickedTwice = true;
        }, 100);
      });
      changed.observe(document.querySelector('dialog'), { subtree: true, childList: true, characterData: true });
    })()`);
    await page.click(`${demo} button`);
    await page.until('window.clickedTwice === true');
    expect(await page.value('window.posted')).toEqual(['/owner/platforms/demo/suspend']);
    // Later, the same button resumes it.
    await page.until(
      `(() => { ${button}.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 })); return window.posted.length === 2; })()`,
    );
    await page.until(`!document.querySelector('${demo}').innerText.includes('Stopped')`);
  });
});
