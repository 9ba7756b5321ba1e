/** The console shows the real result of a call: no failure as a success, and who decided when a person did. */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { approve, card, goTo, isLive, look, openConsole, says } from '../world/browser/console.ts';
import { sized } from '../world/runner/thorough.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

describeInChromium('what the console shows as a success', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  const platformAnswers = (status: number) => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"message":"no\\u202eon"}');
    };
  };
  const hold = (more: object = {}) => agent.hold({ ...WRITE, ...more });
  const go = (path: string) => goTo(page, world.running.baseUrl + path);
  /** Loads the inbox again, so that it shows nothing of the call before. */
  const load = async () => {
    await page.open(`${world.running.baseUrl}/console`);
    await isLive(page);
  };
  /** Returns badge and line of the newest rows. */
  const rows = () =>
    page.value<{ kind: string; badge: string; line: string }[]>(
      `[...document.querySelectorAll('#activity .row')].map((one) => ({ kind: one.querySelector('.badge').dataset.kind, badge: one.querySelector('.badge').innerText, line: one.querySelector('.line').innerText }))`,
    );

  test.each([
    [404, 'the platform refused it: status 404'],
    [422, 'the platform refused it: status 422'],
    [500, 'the platform failed: status 500'],
    [302, 'the platform answered with a redirect, which is not followed: status 302'],
  ])('an approved call that the platform answered with %i is not green', async (status, words) => {
    platformAnswers(status);
    const id = await hold();
    await load();
    await look(page, id);
    await approve(page);
    await says(page, words);
    const outcome = `document.querySelector('${card(id)} .entry-outcome')`;
    expect(await page.value(`${outcome}.dataset.kind`)).toBe('wait');
    // The approval page shows the platform's message, too: without it the owner cannot tell what to repair.
    if (status >= 400) expect(await page.value(`${outcome}.innerText`)).toContain('The platform says: “no⟦U+202E⟧on”');
    await go('/console/activity?result=allowed');
    await page.until(`document.querySelector('#activity .row') !== null`);
    const [first] = await rows();
    expect(first).toMatchObject({ kind: 'wait', badge: `Allowed · ${status}` });
  });

  test.each([
    ['window', { width: 1280, height: 800 }],
    ['phone', { width: 360, height: 740 }],
  ] as const)('the message about a failed call blocks no other call, in a %s', async (as, size) => {
    platformAnswers(404);
    await page.resize(size, as);
    onTestFinished(() => page.resize({ width: 1280, height: 800 }));
    const other = await hold({ data: { as, call: 1 } });
    await load();
    const id = await hold({ data: { as, call: 2 } });
    await page.until(`document.querySelector('${card(id)}') !== null`);
    await look(page, id);
    await approve(page);
    await says(page, 'the platform refused it: status 404');
    // Fixed at its place, so whatever is scrolled under its text must be reached by a click there.
    const reached = await page.value<string>(`(() => {
        const { left, right, top, bottom } = document.querySelector('.toast').getBoundingClientRect();
        const opener = document.querySelector('${card(other)} .opener');
        window.scrollBy(0, opener.getBoundingClientRect().top - (top + bottom) / 2);
        const at = document.elementFromPoint(left + 12, (top + bottom) / 2);
        return at.closest('.toast') ? 'the message' : 'the page';
      })()`);
    expect(reached).toBe('the page');
    expect(await page.value(`document.querySelector('.toast').getBoundingClientRect().top`)).toBe(
      as === 'phone' ? 100 : 16,
    );
    await page.click('.toast button');
    await page.until(`document.querySelector('.toast') === null`);
    await look(page, other);
    expect((await organisation.deny(other)).status).toBe(200);
  });

  test('a call that the platform answers with 200 and an error in the body is not shown as a success', async () => {
    const manifest = { scopes: { 'chat:write': ['POST /items'] }, failed_if: { at: '/ok', is: false } };
    await organisation.platform({ id: 'chat', manifest });
    const chatter = await organisation.agent({ name: 'chatter', grants: { chat: { scopeList: ['chat:write'] } } });
    world.upstream.answer = (_request, response) =>
      response.setHeader('content-type', 'application/json').end('{"ok":false,"error":"channel_not_found"}');
    const held = await chatter.act({ ...WRITE, platform: 'chat', scope: 'chat:write' });
    const id = held.body.approval_id as string;
    await load();
    await look(page, id);
    await approve(page);
    await says(page, 'the platform answered with an error: status 200');
    expect(await page.value(`document.querySelector('${card(id)} .entry-outcome').dataset.kind`)).toBe('wait');
    await go('/console/activity?result=allowed');
    await page.until(`document.querySelector('#activity .row') !== null`);
    expect((await rows())[0]).toMatchObject({ kind: 'wait', badge: 'Allowed · error' });
    await page.click('#activity summary');
    await page.until(
      `document.querySelector('#activity .facts')?.innerText.includes('200, with an error in its body')`,
    );
    expect(await page.value(`document.querySelector('#activity .steps').innerText`)).toContain(
      'made: status 200, with an error in its body',
    );
    await page.open(`${world.running.baseUrl}/approve/${id}`);
    await page.until(`document.querySelector('.outcome')?.dataset.kind === 'wait'`);
    expect(await page.value(`document.querySelector('.outcome').innerText`)).toContain('channel_not_found');
    world.upstream.answer = undefined;
  });

  test('a call that the platform accepted is green, in the inbox and in the activity', async () => {
    const id = await hold();
    await load();
    await look(page, id);
    await approve(page);
    await says(page, 'and made: status 200');
    expect(await page.value(`document.querySelector('${card(id)} .entry-outcome').dataset.kind`)).toBe('good');
    await go('/console/activity');
    await page.until(`document.querySelector('#activity .row') !== null`);
    expect((await rows())[0]).toMatchObject({ kind: 'good', badge: 'Allowed' });
  });

  test('a call in flight is not green, and shows its result when it has ended', async () => {
    let answer = () => {};
    const asked = new Promise<void>((reached) => {
      world.upstream.answer = (_request, response) => {
        answer = () => response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
        reached();
      };
    });
    await load();
    const id = await hold();
    await page.until(`document.querySelector('${card(id)}') !== null`);
    const decided = organisation.approve(id);
    await asked;
    const outcome = (words: string) =>
      page.until(`((one) => one?.innerText.includes('${words}') && one.dataset.kind === 'wait')
          (document.querySelector('${card(id)} .entry-outcome'))`);
    await outcome('The call is under way.');
    answer();
    await outcome('the platform refused it: status 404');
    await decided;
  });

  test('the note of a decision cannot imitate another entry of the history', async () => {
    const id = await hold();
    await organisation.deny(id, { note: 'no \u202eetorppa' });
    await go('/console/activity');
    await page.until(`document.querySelector('#activity .row') !== null`);
    await page.click('#activity summary');
    await page.until(`document.querySelector('#activity .steps') !== null`);
    expect(await page.value(`document.querySelector('#activity .steps').innerText`)).toContain('“no ⟦U+202E⟧etorppa”');
  });

  test('an approved call shows who approved it and how; a call without a hold shows that a rule allowed it', async () => {
    await agent.act(READ);
    await go('/console/activity');
    await page.until(`document.querySelectorAll('#activity .row').length > 3`);
    const { email } = organisation.owner;
    const open = async (isRead: boolean) => {
      const row = `[...document.querySelectorAll('#activity .row[data-result="allowed"]')].find((one) => one.innerText.includes('read /items') === ${isRead})`;
      await page.value(`${row}.querySelector('summary').click()`);
      await page.until(`${row}.querySelector('.facts') !== null`);
      return await page.value<string>(`${row}.querySelector('.facts').innerText`);
    };
    const approved = await open(false);
    expect(approved).toContain(`approved by ${email}, with the API`);
    expect(approved).not.toContain('a rule allows it');
    expect(await open(true)).toContain('a rule allows it');
    const reason = (how: string) =>
      page.value(`import('/console/activity/row-labels.js').then(({ describeReason, actorOf }) => describeReason({
          reason: 'approved', flags: { approval: { decided_by: 'o1', how: '${how}' } } }, actorOf({ flags: { approval: { decided_by: 'o1', how: '${how}' } } }, new Map([['o1', 'ann@acme.example']]))))`);
    expect(await reason('passkey')).toBe('approved by ann@acme.example, with a passkey');
    const standing = (given: string) =>
      page.value(`import('/console/activity/row-labels.js').then(({ describeReason }) => describeReason({
          reason: 'approved', flags: { standing_approval: { id: 's', left: 1 } }, standing: ${given} }, undefined))`);
    expect(await standing(`{ decided_by_email: 'ann@acme.example' }`)).toBe(
      'a standing approval by ann@acme.example allows it',
    );
    expect(await standing('null')).toBe('a standing approval allows it');
    const ended = (because: string) =>
      page.value(`import('/console/activity/row-labels.js').then(({ describeReason }) => describeReason({
          reason: 'approved', flags: { ended: 'access_ended', ended_because: '${because}' } }, undefined))`);
    expect(await ended('agent_suspended')).toBe('a rule allows it; ended under way: the agent is suspended');
    expect(await ended('static_key_ended')).toBe(
      'a rule allows it; ended under way: its static key was revoked or has expired',
    );
  });

  test('refusals by the broker and denials by a person have different labels, and the row names who denied', async () => {
    await agent.act({ ...READ, scope: 'demo:write' });
    const id = await hold();
    await organisation.deny(id);
    await organisation.ask('POST', '/owner/invites', { agent_name: 'newcomer' });
    await go('/console/activity');
    // The names of agents are read beside the rows.
    await page.until(
      `document.querySelectorAll('#activity .row').length > 2 && !document.querySelector('#activity').innerText.includes('agt_')`,
    );
    const { email } = organisation.owner;
    const shown = await rows();
    expect(shown.find(({ line }) => line.includes('invite created'))).toMatchObject({
      kind: '',
      badge: 'Change',
      line: `invite created by ${email}`,
    });
    expect(shown.find(({ badge }) => badge === 'Denied')?.line).toContain('triage asked to send a POST');
    const denied = `[...document.querySelectorAll('#activity .row')].find((one) => one.querySelector('.badge').innerText === 'Denied')`;
    expect(await page.value(`${denied}.innerText`)).toContain(`by ${email}`);
    expect(shown.find(({ badge }) => badge === 'Refused')?.line).toContain('read /items');
    expect(shown.map(({ badge }) => badge)).not.toContain('Event');
  });

  describe('by keyboard, through thirty calls', () => {
    let ids: string[];
    beforeAll(async () => {
      ids = [];
      // An opened call is as high as the window.
      const data = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`member_${at}`, `value ${at}`]));
      for (let at = 0; at < 30; at++) ids.push(await hold({ data, reason: 'The parcel arrived broken.' }));
      await load();
      await page.until(`document.querySelector('.group-count')?.innerText === '30 calls'`);
      await page.press('j', 'Enter');
      await page.until(`document.querySelectorAll('.card').length === 30`);
    });
    /** Expects the focused card head to be in view. Returns the entry that it belongs to. */
    const inSight = async () => {
      // Wait two frames, so that scrolling after rendering has happened.
      const at = await page.value<{ key: string; top: number; bottom: number; height: number }>(`(async () => {
          await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
          const found = document.activeElement.closest('.card-head') ?? document.activeElement;
          const { top, bottom } = found.getBoundingClientRect();
          return { key: document.activeElement.closest('[data-entry]')?.dataset.entry ?? '', top, bottom, height: innerHeight };
        })()`);
      expect(at.top, JSON.stringify(at)).toBeGreaterThanOrEqual(0);
      expect(at.bottom, JSON.stringify(at)).toBeLessThanOrEqual(at.height);
      return at.key;
    };
    const focusAt = (id: string) =>
      page.until(`document.activeElement.closest('[data-entry]')?.dataset.entry === 'approval-${id}'`);

    test('the focused element stays in view at each step', { timeout: 360_000 }, async () => {
      await page.press(...Array(12).fill('j'));
      await focusAt(ids[11]!);
      await inSight();
      const [firstDenied, last] = [11 + sized(3, 6), 11 + sized(5, 9)];
      for (let step = 11; step < firstDenied; step++) {
        await page.press('Enter');
        await page.until(`document.querySelector('.approve:enabled') !== null`);
        await inSight();
        await page.press('a');
        await page.until(`document.querySelector('dialog #approve') === document.activeElement`);
        await page.press('Enter');
        await focusAt(ids[step + 1]!);
        expect(await inSight()).toBe(`approval-${ids[step + 1]}`);
      }
      for (let step = firstDenied; step < last; step++) {
        await page.press('Enter');
        await page.until(`document.querySelector('.decide .deny') !== null`);
        await page.press('d');
        await page.until(`document.querySelector('dialog #deny') !== null`);
        await page.press('Enter');
        await page.until(`document.querySelector('dialog') === null`);
        await focusAt(ids[step + 1]!);
        expect(await inSight()).toBe(`approval-${ids[step + 1]}`);
      }
      // Also when closing a card, and when opening a card above an open one.
      await page.press('Enter');
      await page.until(`document.querySelector('.decide') !== null`);
      await page.press('Escape');
      await page.until(`document.querySelector('.decide') === null`);
      expect(await inSight()).toBe(`approval-${ids[last]}`);
      await page.press('Enter');
      await page.until(`document.querySelector('.decide') !== null`);
      await page.press('j', 'Enter');
      await page.until(`document.querySelector('#open-approval-${ids[last + 1]}').ariaExpanded === 'true'`);
      expect(await inSight()).toBe(`approval-${ids[last + 1]}`);
    });
  });
});
