/** An inbox of thirty, hundreds and thousands of calls (10,000 in a thorough run): grouping, search, selection, joint decisions, without layout shifts. */
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { approve, card, choose, isLive, look, openConsole, says, WAITING } from '../world/browser/console.ts';
import { sized } from '../world/runner/thorough.ts';
import { fresh, givenWorld, shared, WRITE } from '../world/world.ts';

const HOSTILE = '24 calls sandbox-agent wants to POST on demo';

describeInChromium('an inbox of many calls', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());
  const organisation = fresh(() => world.demoOrganisation());
  const busy = fresh(() => organisation.agent({ name: 'sandbox-agent' }));

  const hold = async (agent: TestAgent, count: number, more: object = {}): Promise<string[]> => {
    const ids: string[] = [];
    for (let at = 0; at < count; at++) {
      const held = await expectStatus(202, agent.act({ ...WRITE, data: { title: `call ${at}` }, ...more }));
      ids.push(held.body.approval_id);
    }
    return ids;
  };
  const open = async (waiting: number, owner = organisation.owner): Promise<Page> => {
    const page = await openConsole(world, browser, owner);
    await page.until(`document.querySelector('#waiting')?.innerText.startsWith('${waiting}')`);
    return page;
  };
  const statusOf = async (agent: TestAgent, id: string) => (await agent.get(`/v1/approvals/${id}`)).body.status;
  const count = (page: Page, selector: string) => page.value<number>(`document.querySelectorAll('${selector}').length`);
  const textOf = (page: Page, selector: string) =>
    page.value<string>(`document.querySelector('${selector}')?.innerText.replace(/\\s+/g, ' ') ?? ''`);
  const focused = (page: Page) =>
    page.value<string>(
      `((one) => one?.dataset.entry ?? one?.dataset.slot ?? '')(document.activeElement.closest('[data-entry], [data-slot]'))`,
    );
  const made = () => world.upstream.seen.filter(({ method }) => method === 'POST').length;

  test('equal calls are grouped in one line with a count; another agent, scope or method is not in the group', async () => {
    const other = await organisation.agent({ name: HOSTILE });
    await hold(busy, 24);
    await hold(other, 2);
    const page = await open(26);
    expect(await count(page, '.group')).toBe(1);
    expect(await count(page, '.card')).toBe(2);
    expect(await textOf(page, '.group .group-count')).toBe('24 calls');
    expect(await textOf(page, '.group .about')).toContain('demo:write');
    // The cards are in one column, whatever the styles of other pages are.
    const lefts = `[...document.querySelectorAll('#held > li')].map((one) => one.getBoundingClientRect().left)`;
    expect(await page.value(`new Set(${lefts}).size`)).toBe(1);
    // An agent name that looks like a group is shown as a name, and not as a count.
    expect(await count(page, '.group-count')).toBe(1);
    expect(await page.value(`document.querySelector('.card strong').innerText`)).toBe(HOSTILE);
    await page.click('.group .opener');
    await page.until(`document.querySelectorAll('.group .card').length === 24`);
    expect(await count(page, '.card')).toBe(26);
  });

  test('filters and search narrow the list, are kept in the URL, and survive a reload', async () => {
    const other = await organisation.agent({ name: 'reader' });
    await hold(busy, 6);
    await hold(other, 2, { endpoint: '/items/special', method: 'PATCH' }).catch(() => {});
    await hold(other, 2);
    const page = await open((await organisation.pending()).length);
    await choose(page, '#by-agent', other.agentId);
    await page.until(`document.querySelectorAll('.group').length === 0`);
    expect(await page.value('location.search')).toBe(`?agent=${other.agentId}`);
    expect(await textOf(page, '#fitting')).toMatch(/^\d+ of \d+$/);
    await page.open(await page.value<string>('location.href'));
    await isLive(page);
    await page.until(`document.querySelector('.card') !== null`);
    expect(await count(page, '.group')).toBe(0);
    await choose(page, '#by-agent', '');
    await page.until(`document.querySelectorAll('.group').length === 1`);
    await page.value('document.activeElement.blur()');
    await page.press('/');
    await page.until(`document.activeElement.id === 'words'`);
    await page.type('reader');
    await page.until(`document.querySelectorAll('.group').length === 0`);
    expect(await count(page, '.card')).toBe(2);
    await page.type(' nothing like that');
    await page.until(`document.querySelector('#none-fits') !== null`);
    await choose(page, '#by-kind', 'registration');
    await page.until(`document.querySelector('#none-fits') !== null`);
  });

  test('by keyboard: x selects a group, a lists its calls for confirmation, Enter approves each of them once', async () => {
    const ids = await hold(busy, 7);
    const page = await open(7);
    await page.press('j', 'x');
    await page.until(`document.querySelector('#selection')?.innerText.includes('7 selected')`);
    await page.press('a');
    await page.until(`document.querySelectorAll('dialog .several li').length === 7`);
    expect(await textOf(page, 'dialog h2')).toBe('Approve 7 calls?');
    expect(made()).toBe(0);
    await page.until(`document.querySelector('#lacking').innerText === ''`);
    await page.press('Enter');
    await says(page, '7 approved.');
    expect(made()).toBe(7);
    for (const id of ids) expect(await statusOf(busy, id)).toBe('approved');
    expect(await count(page, '#selection')).toBe(0);
    await page.until(`document.title === 'Inbox · Agent Broker'`);
    expect(await textOf(page, '.group .about')).toContain('7 decided');
  });

  test('Shift and x select a range from the last selected call; d denies the range with one reason; the others stay pending', async () => {
    const ids = await hold(busy, 4);
    const page = await open(4);
    await page.press('j', 'x', 'j', 'j', 'Shift+X');
    await page.until(`document.querySelector('#selection')?.innerText.includes('3 selected')`);
    await page.press('d');
    await page.until(`document.querySelector('dialog #deny') !== null`);
    await page.click('.chip input[value="Not now"]');
    await page.click('#deny');
    await says(page, '3 denied.');
    for (const id of ids.slice(0, 3))
      expect((await busy.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'denied', note: 'Not now' });
    expect(await statusOf(busy, ids[3]!)).toBe('pending');
    await page.until(`document.activeElement.closest('[data-entry]')?.dataset.entry === 'approval-${ids[3]}'`);
    expect(made()).toBe(0);
  });

  test('a call with folded parts or unusual characters must be opened before it can be approved together with others', async () => {
    const body = { title: 'long', text: 'x'.repeat(1_200) };
    const [long] = await hold(busy, 1, { data: body });
    const [odd] = await hold(busy, 1, { data: { title: 'pay \u202eyap' } });
    await hold(busy, 1);
    const page = await open(3);
    await page.press('j', 'x', 'j', 'x', 'j', 'x', 'a');
    await page.until(`document.querySelector('#lacking')?.innerText.startsWith('2 of them have folded parts')`);
    await page.press('Enter');
    expect(await count(page, 'dialog .several [data-closed="true"]')).toBe(2);
    const opened = (at: number) => `dialog .several > li:nth-child(${at})`;
    await page.click(`${opened(2)} > details > summary`);
    await page.until(`document.querySelector('#lacking').innerText.startsWith('One of them has folded parts')`);
    await page.click(`${opened(1)} > details > summary`);
    await page.until(`document.querySelector('${opened(1)} .show-everything') !== null`);
    await page.value(`document.querySelector('dialog #approve').click()`);
    for (const id of [long!, odd!]) expect(await statusOf(busy, id)).toBe('pending');
    await page.click(`${opened(1)} .show-everything`);
    await page.until(`document.querySelector('#lacking').innerText === ''`);
    await page.click('dialog #approve');
    await says(page, '3 approved.');
    expect(made()).toBe(3);
  });

  test('before a joint decision each call shows what has changed since it was held, and whether others have to approve it', async () => {
    const rules = [{ effect: 'require_approval', methods: ['POST'], approvers: 2 }, { effect: 'allow' }];
    const careful = await organisation.agent({ name: 'careful', rules });
    const [two] = await hold(careful, 1);
    const ids = [two!, ...(await hold(busy, 1))];
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    const secret = { secret: 'another-secret-0123456789' };
    await expectStatus(200, organisation.ask('POST', `/owner/connections/${connections[0].id}/secret`, secret));
    const page = await open(2);
    for (const id of ids) await page.click(`${card(id)} .pick input`);
    await page.click('#approve-selected');
    await page.until(`document.querySelectorAll('dialog .several .odd').length === 2`);
    expect(await textOf(page, 'dialog .several .odd')).toContain('was replaced on ');
    expect(await textOf(page, 'dialog')).toContain(
      '1 call is made once others have approved it, too, and each of the others immediately',
    );
    await page.press('Escape');
  });

  test('before a joint decision each call can be opened to its whole request, and a changed call is marked', async () => {
    const ids = await hold(busy, 2, { data: { title: 'a', note: { deep: 'in the body' } } });
    const page = await open(2);
    for (const id of ids) await page.click(`${card(id)} .pick input`);
    await page.click('#approve-selected');
    await page.until(`document.querySelectorAll('dialog .several li').length === 2`);
    expect(await textOf(page, 'dialog .several')).not.toContain('in the body');
    await page.click('dialog .several > li:first-child > details > summary');
    await page.until(`document.querySelector('dialog .request-view') !== null`);
    const shown = await textOf(page, 'dialog .several > li:first-child');
    for (const words of ['/items', 'in the body', 'Waits until']) expect(shown).toContain(words);
    await sql`update approvals set request_hash = ${'e'.repeat(64)} where id = ${ids[1]!}`.execute(world.db);
    await page.click('dialog .several > li:last-child > details > summary');
    await page.until(
      `document.querySelector('dialog .several > li:last-child').innerText.includes('no longer the request')`,
    );
    expect(await count(page, 'dialog .request-view')).toBe(1);
    expect(made()).toBe(0);
  });

  test('a call that is decided elsewhere leaves the selection with a message; a changed call is not approved', async () => {
    const ids = await hold(busy, 3);
    const page = await open(3);
    for (const id of ids) await page.click(`${card(id)} .pick input`);
    await page.until(`document.querySelector('#selection')?.innerText.includes('3 selected')`);
    const colleague = await organisation.addOwner('approver');
    await organisation.deny(ids[0], {}, colleague);
    await says(page, 'One of the selected calls was decided elsewhere');
    await page.until(`document.querySelector('#selection')?.innerText.includes('2 selected')`);
    await page.click('#approve-selected');
    await page.until(`document.querySelectorAll('dialog .several li').length === 2`);
    await sql`update approvals set request_hash = ${'f'.repeat(64)} where id = ${ids[1]!}`.execute(world.db);
    await page.until(`document.querySelector('#lacking').innerText === ''`);
    await page.click('#approve');
    await says(page, '1 no longer the request that you were shown');
    expect(await statusOf(busy, ids[1]!)).toBe('pending');
    expect(await statusOf(busy, ids[2]!)).toBe('approved');
    expect(made()).toBe(1);
  });

  test('calls that the platform refuses are not reported as a success', async () => {
    await hold(busy, 5);
    world.upstream.answer = (_request, response) => response.writeHead(422).end('{}');
    const page = await open(5);
    await page.click('.group .pick input');
    await page.click('#approve-selected');
    await page.until(`document.querySelector('#lacking')?.innerText === ''`);
    await page.click('#approve');
    await says(page, '5 approved; 5 of them made without success');
    expect(await page.value(`document.querySelector('.toast').dataset.kind`)).toBe('wait');
  });

  test('no line moves: new calls join their group, an open group only on request, and single cards do not become a group', async () => {
    const other = await organisation.agent({ name: 'reader' });
    await hold(busy, 5);
    const [last] = await hold(other, 1);
    const page = await open(6);
    const topOf = () => page.value<number>(`document.querySelector('${card(last!)}').getBoundingClientRect().top`);
    const before = await topOf();
    await hold(busy, 1);
    await page.until(`document.querySelector('.group-count').innerText === '6 calls'`);
    expect(await topOf()).toBe(before);
    await page.click('.group .opener');
    await page.until(`document.querySelectorAll('.group .card').length === 6`);
    const opened = await topOf();
    await hold(busy, 2);
    await page.until(`document.querySelector('.group-count').innerText === '8 calls'`);
    expect(await count(page, '.group .card')).toBe(6);
    expect(await topOf()).toBe(opened);
    await page.click('.group .more button');
    await page.until(`document.querySelectorAll('.group .card').length === 8`);
    // Many calls arrive while the page is open: the first are single cards, the rest one group.
    await hold(other, 12);
    await page.until(
      `document.querySelectorAll('.group').length === 2 && [...document.querySelectorAll('.group-count')].at(-1).innerText === '9 calls'`,
    );
    expect(await count(page, '.cards > .card')).toBe(8 + 4);
  });

  test('the focused element stays in view while thirty calls are selected, opened and decided', async () => {
    const names = Array.from({ length: 10 }, (_, at) => `agent-${at}`);
    const agents = await Promise.all(names.map((name) => organisation.agent({ name })));
    const data = Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`member_${at}`, `value ${at}`]));
    for (const agent of agents) await hold(agent, 3, { data });
    const page = await open(30);
    const inSight = async () => {
      const at = await page.value<{ top: number; bottom: number; height: number }>(`(async () => {
          await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
          const { top, bottom } = (document.activeElement.closest('.card-head') ?? document.activeElement).getBoundingClientRect();
          return { top, bottom, height: innerHeight };
        })()`);
      expect(at.top, JSON.stringify(at)).toBeGreaterThanOrEqual(0);
      expect(at.bottom, JSON.stringify(at)).toBeLessThanOrEqual(at.height);
    };
    for (let at = 0; at < 20; at++) {
      await page.press('j');
      await inSight();
    }
    await page.press('x', 'j', 'j', 'Shift+X', 'a');
    await page.until(
      `document.querySelector('dialog #approve') === document.activeElement && document.querySelector('#lacking').innerText === ''`,
    );
    await page.press('Enter');
    await says(page, '3 approved.');
    await page.until(`document.querySelector('dialog') === null`);
    await inSight();
    expect(await focused(page)).toMatch(/^approval-/);
    await page.press('Enter');
    await page.until(`document.querySelector('.decide') !== null`);
    await inSight();
  });

  test('an admin suspends the agent from the card; an approver has no such button, and both see when it is suspended', async () => {
    const [id] = await hold(busy, 1);
    const page = await open(1);
    await look(page, id!);
    await page.click('.suspend button');
    await page.until(`document.querySelector('dialog')?.innerText.includes('Suspend sandbox-agent?')`);
    await page.click('#move');
    await says(page, 'sandbox-agent is suspended.');
    await page.until(`document.querySelector('.suspend')?.innerText.includes('This agent is suspended')`);
    expect((await busy.act(WRITE)).body).toMatchObject({ error: 'agent_halted' });
    await page.until(`document.querySelector('${card(id!)} .about').innerText.startsWith('Agent suspended')`);
    await organisation.ask('POST', `/owner/agents/${busy.agentId}/resume`, {});
    const approver = await open(1, await organisation.addOwner('approver'));
    await look(approver, id!);
    expect(await count(approver, '.suspend')).toBe(0);
  });

  test('a viewer can search and open calls, but not select them', async () => {
    await hold(busy, 6);
    const viewer = await open(6, await organisation.addOwner('viewer'));
    expect(await count(viewer, '.pick')).toBe(0);
    await viewer.press('j', 'x', 'a', 'd');
    expect(await count(viewer, 'dialog, #selection')).toBe(0);
  });

  describe('with hundreds and thousands of calls', () => {
    let page: Page;
    /** Stores copies of one held call; `each(at)` returns the columns that differ. Returns the id of the original, the oldest. */
    const fill = async (total: number, each: (at: number) => object) => {
      const [first] = await hold(busy, 1);
      const row = await world.db.selectFrom('approvals').selectAll().where('id', '=', first!).executeTakeFirstOrThrow();
      const copies = Array.from({ length: total - 1 }, (_, at) => ({
        ...row,
        id: uuidv4(),
        created_at: row.created_at + 1 + at,
        expires_at: row.expires_at + 1 + at,
        ...each(at),
      }));
      for (let at = 0; at < copies.length; at += 100)
        await world.db
          .insertInto('approvals')
          .values(copies.slice(at, at + 100))
          .execute();
      return first!;
    };
    const asked = (path: string) =>
      page.value<number>(
        `performance.getEntriesByType('resource').filter(({ name }) => name.includes('${path}')).length`,
      );

    test('all different: fifty are rendered, more on request, and few API requests are made', async () => {
      await fill(500, (at) => ({ scope: `demo:write.${at}` }));
      page = await open(500);
      expect(await count(page, '.card')).toBe(50);
      expect(await textOf(page, '#show-more')).toBe('Show more (450 not shown)');
      // Read at the start, and again when the event stream opens: three pages of calls, and one of each other list.
      expect(await asked('/owner/approvals?')).toBeLessThanOrEqual(6);
      expect(await asked('/owner/')).toBeLessThanOrEqual(16);
      expect(await page.value(`document.querySelectorAll('*').length`)).toBeLessThan(1_800);
      await page.press(...Array(51).fill('j'));
      await page.until(`document.querySelectorAll('.card').length === 100`);
      await page.click('#words');
      await page.type('demo:write.498');
      await page.until(`document.querySelector('#fitting').innerText === '1 of 500'`);
      expect(await count(page, '.card')).toBe(1);
    });

    const thousands = sized(2_000, 10_000);
    test(`${thousands} of a hundred agents: grouped, searched, decided, and new calls are added`, {
      timeout: 540_000,
    }, async () => {
      const agents = await Promise.all(
        Array.from({ length: 100 }, (_, at) => organisation.agent({ name: `agent-${at}` })),
      );
      const oldest = await fill(thousands, (at) => ({
        agent_id: agents[at % 100]!.id,
        ...(at % 2 === 1 && { scope: `demo:write.${at}` }),
      }));
      page = await openConsole(world, browser, organisation.owner);
      const waiting = (count: number) =>
        page.until(`document.querySelector('#waiting')?.innerText.startsWith('${count}')`, 60_000);
      await waiting(thousands);
      expect(await count(page, '.group, .card')).toBe(50);
      expect(await count(page, '.group')).toBeGreaterThan(20);
      expect(await page.value(`document.querySelectorAll('*').length`)).toBeLessThan(1_800);
      await page.click('#words');
      await page.type(`demo:write.${thousands - 3}`);
      await page.until(`document.querySelector('#fitting').innerText === '1 of ${thousands}'`);
      await page.press('Control+a', 'Backspace');
      await page.until(`document.querySelectorAll('.group, .card').length === 50`);
      const sent = made();
      await look(page, oldest);
      await approve(page);
      await says(page, 'and made');
      expect(made()).toBe(sent + 1);
      await hold(busy, 1, { reason: 'the newest of all' });
      await waiting(thousands);
      await page.click('#words');
      await page.type('sandbox-agent');
      await page.until(`document.querySelectorAll('.card[data-state="waiting"]').length === 1`, 60_000);
    });

    // One request decides up to a hundred calls.
    const equal = sized(150, 500);
    const requests = Math.ceil(equal / 100);
    test(`all equal: one line, ${equal} selected and denied together in ${requests} requests`, async () => {
      await fill(equal, () => ({}));
      page = await open(equal);
      expect(await count(page, '.card')).toBe(0);
      expect(await page.value(`document.querySelectorAll('*').length`)).toBeLessThan(400);
      await page.click('.group .opener');
      await page.until(`document.querySelectorAll('.group .card').length === 50`);
      await page.click('.group > .card-head .pick input');
      await page.until(`document.querySelector('#selection').innerText.includes('${equal} selected')`);
      await page.click('#deny-selected');
      await page.until(`document.querySelectorAll('dialog .several li').length === ${equal}`);
      await page.value('performance.clearResourceTimings()');
      await page.click('#deny');
      await page.until(`document.querySelector('#said').innerText.includes('${equal} denied.')`, 50_000);
      const decided = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/owner/approvals/decide')).length`;
      // On a busy machine, Chromium adds a resource entry only after the page has read the response.
      await page.until(`${decided} >= ${requests}`);
      expect(await page.value(decided)).toBe(requests);
      await page.until(`${WAITING} === 0`);
      const { body } = await organisation.ask('GET', '/owner/approvals?status=pending');
      expect(body.approvals).toEqual([]);
    });
  });

  beforeAll(() => {
    world.upstream.answer = undefined;
  });
});
