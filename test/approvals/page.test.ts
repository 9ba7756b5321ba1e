/** The approval page in a real browser: from its link, on a phone, with a passkey and without a session. */
import { createHash } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { signInByLink } from '../world/browser/console.ts';
import {
  complaintsOf,
  DESK,
  hold,
  isDisabled,
  linkOf,
  lookAgain,
  openHeld,
  openSignInLink,
  PHONE,
  picture,
  pictures,
  signOut,
  text,
} from '../world/browser/held-page.ts';
import { DAY_MS } from '../world/times.ts';
import { givenWorld, shared } from '../world/world.ts';

const REFUND = {
  platform: 'payments',
  endpoint: '/refunds?subject=Your%20refund',
  scope: 'payments:refunds.create',
  data: {
    payment: 'pay_1001',
    amount: 4500,
    currency: 'eur',
    reason: 'arrived broken',
    receipt_to: ['ann@acme.example'],
    message: 'Dear Ann,\n\nyour cup arrived broken, so here is your money.\n\nYours,\nsupport',
  },
  headers: { 'X-Request-Source': 'triage' },
  reason: 'The customer sent a photo of the broken cup.',
};

describeInChromium('the approval page', () => {
  let agent: TestAgent;

  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    const scopes = { 'payments:refunds.create': ['POST /refunds'] };
    const recipients = { 'POST /refunds': ['/receipt_to/*'] };
    const sentences = { 'POST /refunds': 'refund **{amount /amount /currency}** of payment **{/payment}**' };
    const bodies = { 'POST /refunds': ['json', 'bytes'] };
    await organisation.platform({ id: 'payments', manifest: { scopes, recipients, sentences, bodies } });
    const policy = await organisation.policy(
      [{ name: 'refunds-wait', effect: 'require_approval', methods: ['POST'] }],
      'careful',
    );
    const grants = { demo: {}, payments: { scopeList: Object.keys(scopes) } };
    agent = await organisation.agent({ name: 'support-triage', policy, grants });
  });
  const page = shared(async () => await (await startBrowser()).page(PHONE));
  beforeAll(() => page.resize(PHONE, 'phone'));
  const authenticator = shared(() => page.authenticator());

  test('a file is described by type, length and hash, and can be decided', async () => {
    const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 2]);
    const headers = { 'content-type': 'image/png' };
    const id = await hold(agent, { ...REFUND, data: bytes.toString('base64'), encoding: 'base64', headers });
    await openHeld(page, world, id);
    const shown = await text(page, 'main');
    expect(shown).toContain('7 bytes of image/png');
    expect(shown).toContain(createHash('sha256').update(bytes).digest('hex'));
    expect(shown).not.toContain('No body');
    expect(await isDisabled(page, '.approve')).toBe(false);
  });

  test('without passkey and session it shows the request, links to sign-in, and returns after it', async () => {
    const id = await hold(agent, REFUND);
    await openHeld(page, world, id);
    expect(await text(page, 'main')).not.toContain('owner link');
    expect(await text(page, '.choices')).toBe('Approve with passkey\nDeny with passkey');
    await page.click('.sign-in');
    await page.until(`location.pathname === '/console/sign-in'`);
    await openSignInLink(page, world, organisation.owner);
    await page.until(`location.pathname === '/approve/${id}' && document.querySelector('.deny') !== null`);
  });

  test('a signed-in owner without a passkey is offered to add one', async () => {
    await page.until(`document.querySelector('.offer') !== null`);
    await pictures(page, 'approve-signed-in');
    await page.click('.offer button');
    await page.until(`document.querySelector('.passkey') !== null`);
    expect(await authenticator.credentials()).toHaveLength(1);
    expect(await text(page, 'h1')).toContain('support-triage');
    await pictures(page, 'approve-signed-in-passkey');
  });

  test('from the link alone, on a phone: one touch approves, and the waiting agent gets the answer', async () => {
    await signOut(page);
    const id = await hold(agent, REFUND);
    await openHeld(page, world, id);
    // What is needed to decide is displayed immediately; the rest is folded.
    expect(await text(page, 'main')).not.toContain('payments-main');
    await page.click('.details summary');
    const shown = await text(page, 'main');
    await page.click('.details summary');
    for (const said of [
      'support-triage',
      'POST',
      'payments',
      '/refunds?subject=Your%20refund',
      'Your refund',
      'ann@acme.example',
      'refunds-wait',
      'payments:refunds.create',
      'payments-main',
      'pay_1001',
      'your cup arrived broken',
      'x-request-source',
      'The agent’s own words',
      'The customer sent a photo of the broken cup.',
      'What will be recorded',
    ])
      expect(shown).toContain(said);
    expect(await text(page, '.time-left')).toMatch(/^2[34] h \d+ min left$/);
    await page.value('scrollTo(0, 0)');
    await pictures(page, 'approve');
    // The picture docs/images/approve-phone.png.
    await page.resize(PHONE);
    await picture(page, 'docs-approve-phone');
    await page.resize(PHONE, 'phone');
    const waiting = agent.get(`/v1/approvals/${id}?wait=50`);
    await page.click('.passkey');
    const answer = await waiting;
    expect(answer.body).toMatchObject({ status: 'approved', result: { status: 200 } });
    expect(JSON.parse(answer.body.result.data.body)).toEqual(REFUND.data);
    expect(world.upstream.seen.map(({ method, target }) => `${method} ${target}`)).toEqual([
      `POST /v1${REFUND.endpoint}`,
    ]);
    // While the call is in flight, the page says so.
    await page.until(`document.querySelector('.outcome')?.innerText.includes('status 200')`);
    expect(await text(page, '.outcome')).toMatch(/^Approved\n.*The call was made at .*status 200/s);
    await pictures(page, 'approve-made');
    const { how, decided_by } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect([how, decided_by]).toEqual(['passkey', organisation.owner.id]);
  });

  test('an old link shows that the call was decided, and nothing of the request', async () => {
    await page.value('location.reload()');
    await page.until(`document.querySelector('.outcome') !== null && document.body.innerText.includes('already')`);
    const shown = await text(page, 'body');
    expect(shown).toContain('Approved already');
    for (const content of ['support-triage', 'pay_1001', 'ann@acme.example', '/refunds', 'broken cup'])
      expect(shown).not.toContain(content);
  });

  test('usable by keyboard alone', async () => {
    const id = await hold(agent, REFUND);
    await page.resize(DESK);
    await openHeld(page, world, id);
    const reached = new Set<string>();
    for (let n = 0; n < 30 && !reached.has('passkey'); n++) {
      await page.press('Tab');
      for (const name of await page.value<string[]>(`[...document.activeElement.classList]`)) reached.add(name);
    }
    expect([...reached]).toEqual(expect.arrayContaining(['brand', 'as-text', 'passkey']));
    // A box whose content fits is no tab stop.
    expect([...reached]).not.toContain('lines');
    await page.press('Enter');
    await page.until(`document.querySelector('.outcome')?.innerText.startsWith('Approved')`);
    expect(await page.value('document.activeElement.tagName')).toBe('H1');
    await page.resize(PHONE, 'phone');
  });

  test('a missing passkey, or a refused prompt, is explained, and nothing is decided', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    const [credential] = await authenticator.credentials();
    await authenticator.removeCredential(credential!.credentialId);
    await page.click('.passkey');
    await page.until(`document.querySelector('.said').innerText.includes('Nothing was decided; try again')`);
    expect(await isDisabled(page, '.passkey')).toBe(false);
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    await authenticator.addCredential(credential!);
    await page.click('.passkey');
    await page.until(`document.querySelector('.outcome') !== null`);
  });

  test('a browser without passkeys shows what to do', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    await page.value(`delete globalThis.PublicKeyCredential`);
    await lookAgain(page);
    await page.until(`document.querySelector('.said').innerText.includes('This browser has no passkeys')`);
    expect(await page.value(`document.querySelector('.passkey') === null`)).toBe(true);
  });

  test('AP-10 at another address than the broker’s own passkeys do not work, and the page says why', async () => {
    const id = await hold(agent);
    await page.open(linkOf(world, id).replace('//localhost:', '//127.0.0.1:'));
    await page.click('.passkey');
    await page.until(`document.querySelector('.said').innerText.includes('by the address in its links')`);
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
  });

  test('a call that the platform refuses, and one that is not made, are each explained', async () => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(422, { 'content-type': 'application/json' }).end('{}');
    };
    await openHeld(page, world, await hold(agent));
    await page.click('.passkey');
    await page.until(`document.querySelector('.outcome')?.innerText.includes('the platform refused it: status 422')`);
    const id = await hold(agent);
    await openHeld(page, world, id);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    await page.click('.passkey');
    await page.until(`document.querySelector('.outcome')?.innerText.includes('Approved, but not made')`);
    expect(await text(page, '.outcome')).toContain('agent_suspended');
    await pictures(page, 'approve-not-made');
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
  });

  test('AP-21 while the platform works the page says so, and the call continues when the page is closed', async () => {
    let answer = () => {};
    const asked = new Promise<void>((reached) => {
      world.upstream.answer = (_request, response) => {
        answer = () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"made":true}');
        reached();
      };
    });
    const id = await hold(agent);
    await openHeld(page, world, id);
    await page.click('.passkey');
    await page.until(`document.querySelector('.outcome')?.innerText.includes('under way')`);
    const moving = async (preference: 'reduce' | 'no-preference') => {
      const features = [{ name: 'prefers-reduced-motion', value: preference }];
      await page.command('Emulation.setEmulatedMedia', { features });
      return await page.value<number>('document.getAnimations().length');
    };
    expect([await moving('no-preference'), await moving('reduce')]).toEqual([1, 0]);
    await pictures(page, 'approve-under-way');
    await page.open('about:blank');
    await asked;
    answer();
    expect((await agent.get(`/v1/approvals/${id}?wait=50`)).body).toMatchObject({
      status: 'approved',
      result: { status: 200, data: { made: true } },
    });
    expect(world.upstream.seen).toHaveLength(1);
    await page.open(linkOf(world, id));
    await page.until(`document.querySelector('.outcome')?.innerText.includes('The call was made')`);
  });

  test('a decision made elsewhere appears on an open page', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    await organisation.deny(id);
    await page.until(`document.querySelector('.outcome')?.innerText.startsWith('Denied already')`);
    expect(world.upstream.seen).toEqual([]);
  });

  test('an open page shows that the agent was suspended meanwhile, and no longer when it was resumed', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    const says = `document.querySelector('#changed-since')?.innerText.includes('The agent is suspended') === true`;
    expect(await page.value(says)).toBe(false);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    await lookAgain(page);
    await page.until(says);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    await lookAgain(page);
    await page.until(`!(${says})`);
  });

  test('an open page shows that the credential of the connection was replaced meanwhile', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    // Those created in the same millisecond are listed in any order.
    const used = connections.find(({ label }: { label: string }) => label === 'demo-main');
    const secret = { secret: 'another-secret-0123456789' };
    await expectStatus(200, organisation.ask('POST', `/owner/connections/${used.id}/secret`, secret));
    await lookAgain(page);
    await page.until(`document.querySelector('#changed-since')?.innerText.includes('was replaced on ') === true`);
    await page.until(`document.querySelector('#changed-since').innerText.includes('${used.label}')`);
  });

  test('a touch after a decision made elsewhere decides nothing, and the page says so', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    // The page does not poll by itself.
    await page.value(`Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })`);
    await organisation.deny(id);
    await page.click('.passkey');
    await page.until(`document.querySelector('.outcome')?.innerText.startsWith('Denied already')`);
    expect(world.upstream.seen).toEqual([]);
  });

  test('when the call expires on an open page, the buttons are disabled immediately, then the page says so', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    expect(await isDisabled(page, '.passkey')).toBe(false);
    await page.offline(true);
    await page.value(`(() => { const now = Date.now; Date.now = () => now() + ${DAY_MS}; })()`);
    await page.until(
      `document.querySelector('.time-left').innerText === 'Expired' && document.querySelector('.passkey').disabled`,
    );
    expect(await text(page, '.said')).toContain('can no longer be decided');
    world.clock.skewMs = DAY_MS;
    await page.offline(false);
    await lookAgain(page);
    await page.until(`document.querySelector('.outcome')?.innerText.startsWith('Too late')`);
    world.clock.skewMs = 0;
  });

  test('a call that ended because its agent was revoked is not reported as undecided to owners', async () => {
    const other = await organisation.agent({ name: 'other', rules: [{ effect: 'require_approval' }] });
    const id = await hold(other);
    await signInByLink(page, world, organisation.owner);
    await openHeld(page, world, id);
    await organisation.ask('POST', `/owner/agents/${other.agentId}/revoke`, {});
    await lookAgain(page);
    await page.until(`document.querySelector('.outcome')?.innerText.startsWith('Ended with its agent')`);
    await signOut(page);
  });

  test('while the broker does not answer, the page keeps its content and marks it as outdated', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    await page.offline(true);
    await lookAgain(page);
    await page.until(`document.body.innerText.includes('What you see may be old')`);
    expect(await text(page, '.request-view')).toContain('/items');
    await page.offline(false);
    await lookAgain(page);
    await page.until(`!document.body.innerText.includes('What you see may be old')`);
  });

  /** Makes the page's requests fail in this way; returns a function that restores them. */
  const breakFetch = async (how: string) => {
    await page.value(`(window.whole ??= fetch, window.fetch = ${how}, true)`);
    return () => page.value('(window.fetch = window.whole, true)');
  };

  test('a truncated answer is ignored: the page keeps its content and marks it as outdated', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    const whole = await breakFetch(`async (...asked) => {
        const answer = await window.whole(...asked);
        return new Response((await answer.text()).slice(0, -5), { status: answer.status });
      }`);
    await lookAgain(page);
    await page.until(`document.body.innerText.includes('is incomplete. Try again. What you see may be old')`);
    expect(await text(page, '.request-view')).toContain('/items');
    await whole();
    await lookAgain(page);
    await page.until(`!document.body.innerText.includes('What you see may be old')`);
  });

  test('an unanswered request does not block later ones', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    const whole = await breakFetch(`(_path, { signal } = {}) => new Promise((_, lost) => {
        window.hanging = true;
        signal?.addEventListener('abort', () => lost(signal.reason));
      })`);
    await lookAgain(page);
    await page.until('window.hanging === true');
    await whole();
    await organisation.deny(id);
    await page.until(`document.querySelector('.outcome')?.innerText.startsWith('Denied already')`, 25_000);
  });

  test('while the broker is too busy to say who is signed in, an owner stays signed in on the page', async () => {
    const id = await hold(agent);
    await signInByLink(page, world, organisation.owner);
    await openHeld(page, world, id);
    const recorded = `document.querySelector('.recorded').textContent.includes('${organisation.owner.email}')`;
    await page.until(recorded);
    const whole = await breakFetch(`async (path, ...more) => {
        if (!String(path).startsWith('/owner/')) return window.whole(path, ...more);
        window.refused = (window.refused ?? 0) + 1;
        return Response.json({ error: 'rate_limited', detail: 'Too many requests.' }, { status: 429 });
      }`);
    await lookAgain(page);
    // A later attempt begins when the earlier one has failed.
    await page.until('window.refused > 1', 20_000);
    expect(await page.value(recorded)).toBe(true);
    expect(await text(page, '.decide')).not.toContain('Sign in');
    await whole();
    await signOut(page);
  });

  test('an owner whom the page could not find at first is found by a later attempt', async () => {
    const id = await hold(agent);
    await signInByLink(page, world, organisation.owner);
    const { identifier } = await page.command('Page.addScriptToEvaluateOnNewDocument', {
      source: `{
        const whole = window.fetch;
        let isFirst = true;
        window.fetch = async (path, ...more) => {
          if (path !== '/owner/me' || !isFirst) return whole(path, ...more);
          isFirst = false;
          return Response.json({ error: 'rate_limited', detail: 'Too many requests.' }, { status: 429 });
        };
      }`,
    });
    await openHeld(page, world, id);
    await page.until(
      `document.querySelector('.recorded')?.textContent.includes('${organisation.owner.email}')`,
      20_000,
    );
    await page.command('Page.removeScriptToEvaluateOnNewDocument', { identifier });
    await signOut(page);
  });

  test('another request than the displayed one cannot be approved', async () => {
    const id = await hold(agent);
    await openHeld(page, world, id);
    await world.db
      .updateTable('approvals')
      .set({ request_hash: 'f'.repeat(64) })
      .where('id', '=', id)
      .execute();
    await lookAgain(page);
    await page.until(`document.body.innerText.includes('has changed since you opened it')`);
    expect(await isDisabled(page, '.passkey')).toBe(true);
  });

  test('a request that was altered in the store is not shown, and cannot be approved', async () => {
    const id = await hold(agent);
    await world.db
      .updateTable('approvals')
      .set({ action: Buffer.alloc(64) })
      .where('id', '=', id)
      .execute();
    await openHeld(page, world, id);
    expect(await text(page, 'main')).toContain('was altered and cannot be read');
    expect(await isDisabled(page, '.passkey')).toBe(true);
  });

  test.each(['00000000-0000-4000-8000-000000000000', 'not-an-id'])('AP-18 %s: there is no such request', async (id) => {
    await page.open(linkOf(world, id));
    await page.until(`document.body.innerText.includes('There is no such request')`);
    expect(await page.value(`document.querySelector('.choices') === null`)).toBe(true);
  });

  test('after another owner signed in in another tab, a click decides nothing as that owner, and the page then shows them', async () => {
    const [approver, other] = [await organisation.addOwner('approver'), await organisation.addOwner('approver')];
    await signInByLink(page, world, approver);
    const id = await hold(agent, REFUND);
    await openHeld(page, world, id);
    await page.click('.choices .approve');
    await page.until(`document.querySelector('dialog #approve') !== null`);
    await signInByLink(page, world, other);
    await page.click('dialog #approve');
    await page.until(`document.querySelector('.said').innerText.includes('signed in as ${other.email} by now')`);
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    await page.until(`document.querySelector('.recorded').textContent.includes(${JSON.stringify(other.email)})`);
    await page.click('.choices .deny');
    await page.click('dialog #deny');
    await page.until(`document.querySelector('.outcome')?.innerText.includes('${other.email} decided signed in')`);
    // The refusal is expected; the last test looks for all others.
    const refused = page.complaints.findIndex((complaint) => complaint.includes('status of 403'));
    page.complaints.splice(refused, 1);
  });

  test('a signed-in owner decides by a click, with a note for the agent', async () => {
    const approver = await organisation.addOwner('approver');
    await signInByLink(page, world, approver);
    const id = await hold(agent, REFUND);
    await openHeld(page, world, id);
    await page.until(`document.querySelector('.deny') !== null`);
    // This approver has no passkey: a click decides after a confirmation, for both decisions.
    expect(await text(page, '.choices')).toBe('Approve…\nDeny…');
    expect(await page.value(`document.querySelector('.recorded').textContent`)).toContain(approver.email);
    await page.click('.choices .deny');
    await page.until(`document.querySelector('dialog[open]') !== null`);
    const facts = ['support-triage', 'POST /refunds', 'ann@acme.example', 'pay_1001', '4500', 'Dear Ann, ↵ ↵ your cup'];
    for (const fact of facts) expect(await text(page, 'dialog')).toContain(fact);
    await pictures(page, 'approve-confirm-deny');
    await page.click('#own');
    await page.type('Ask Ann first.');
    await page.click('dialog #deny');
    await page.until(`document.querySelector('.outcome')?.innerText.startsWith('Denied')`);
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'denied', note: 'Ask Ann first.' });
    expect(await text(page, '.outcome')).toContain(`${approver.email} decided signed in, by a click`);
    const another = await hold(agent, REFUND);
    await openHeld(page, world, another);
    await page.click('.choices .approve');
    await page.click('dialog #approve');
    await page.until(`/^Approved\\n[^]*status 200/.test(document.querySelector('.outcome')?.innerText)`);
    expect((await agent.get(`/v1/approvals/${another}`)).body.result.status).toBe(200);
  });

  test('a viewer, and an owner of another organisation, can read the page and see that they cannot decide', async () => {
    await signInByLink(page, world, await organisation.addOwner('viewer'));
    const id = await hold(agent);
    await openHeld(page, world, id);
    await page.until(`document.querySelector('.said').innerText.includes('Your role is viewer')`);
    expect(await page.value(`document.querySelector('.deny') === null`)).toBe(true);
    await signOut(page);
    await signInByLink(page, world, (await world.organisation()).owner);
    await openHeld(page, world, id);
    await page.until(`document.querySelector('.said').innerText.includes('another organisation')`);
    await signOut(page);
  });

  test('no page violated its Content-Security-Policy', () => {
    expect(complaintsOf(page).filter((complaint) => !/ERR_INTERNET_DISCONNECTED/.test(complaint))).toEqual([]);
  });
});
