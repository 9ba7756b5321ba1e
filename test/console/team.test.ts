/** The people of an organisation and the settings of approvals, in a real browser: with the mouse and with the keyboard alone. */
import { expect, test } from 'vitest';
import { recordChange } from '../../broker/audit/record-change.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { findPipeline, notePipelineUse } from '../../broker/store/pipelines.ts';
import { expectAccessible } from '../world/browser/accessible.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { DESKTOP, has, isLive, openConsole, PHONE, says } from '../world/browser/console.ts';
import { givenWorld, shared } from '../world/world.ts';

const HOSTILE = "o'neil+img.src@acme.example";

describeInChromium('the team in the console', () => {
  const world = givenWorld();
  const browser = shared(() => startBrowser());

  test('pipelines are listed with the token subject that they trust, and removed; a change by a pipeline names it, also after its removal', async () => {
    const organisation = await world.organisation();
    const subject = 'repo:acme/governance:ref:refs/heads/main';
    const issuer = 'https://token.actions.githubusercontent.com';
    const made = await organisation.ask('POST', '/owner/pipelines', { name: 'main', role: 'admin', issuer, subject });
    const { store, clock } = world.running.broker;
    const pipeline = (await findPipeline(store.db, made.body.id))!;
    const by = { owner: pipeline, how: 'pipeline', correlationId: crypto.randomUUID() } as const;
    await recordChange(world.running.services, by, { reason: 'governance_applied' }, (db) =>
      notePipelineUse(db, pipeline, clock()),
    );
    const page = await openConsole(world, browser, organisation.owner);
    await page.click('nav a[href="/console/activity"]');
    await has(page, 'main', 'the pipeline main');
    await page.click('nav a[href="/console/team"]');
    await has(page, '[data-pipeline="main"]', `Plans, applies and exports as ${subject} of ${issuer} Used last`);
    await expectAccessible(page, 'the team, with pipelines');
    await page.resize(PHONE, 'phone');
    await expectAccessible(page, 'the team, with pipelines, on a phone');
    await page.resize(DESKTOP);
    await page.click('[data-pipeline="main"] [data-verb="remove"]');
    await page.click('#remove-pipeline');
    await says(page, 'The pipeline main is removed.');
    await page.until(`document.querySelector('[data-pipeline]') === null`);
    expect((await organisation.ask('GET', '/owner/pipelines')).body.pipelines).toEqual([]);
    await page.click('nav a[href="/console/activity"]');
    await has(page, 'main', 'a removed pipeline');
    expect(page.complaints).toEqual([]);
  });

  test('the late close event of a closed dialog does not close the next dialog', async () => {
    const organisation = await world.organisation();
    await organisation.ask('POST', '/owner/owners', { email: 'ann@acme.example', role: 'viewer' });
    const page = await openConsole(world, browser, organisation.owner);
    await page.click('nav a[href="/console/team"]');
    await page.click('[data-role="viewer"] [data-verb="link"]');
    await page.until(`document.querySelector('dialog #make-link') !== null`);
    await page.value(`(window.before = document.querySelector('dialog'), 0)`);
    await page.click('#close-link');
    await page.until(`document.querySelector('dialog') === null`);
    await page.click('[data-role="viewer"] [data-verb="role"]');
    await page.until(`document.querySelector('dialog #save-role') !== null`);
    // On a busy machine, input is handled before the browser's own close event.
    await page.value(`window.before.dispatchEvent(new Event('close'))`);
    await page.click('dialog input[value="approver"]');
    await page.click('#save-role');
    await says(page, 'ann@acme.example is approver now.');
    expect(page.complaints).toEqual([]);
  });

  test('an agent whose 200 children fill the list of agents can be handed over', async () => {
    const organisation = await world.organisation();
    const bob = await organisation.addOwner('admin');
    const one = await organisation.agent({ name: 'z' });
    const row = await world.db.selectFrom('agents').selectAll().where('id', '=', one.id).executeTakeFirstOrThrow();
    const copies = Array.from({ length: 200 }, (_, at) => ({
      ...row,
      id: uuidv4(),
      agent_id: `${row.agent_id.slice(0, -3)}${at + 222}`,
      name: `a ${at}`,
      agent_type: 'child' as const,
      parent_id: one.id,
      expires_at: Date.now() + 3_600_000,
      policy_id: null,
      public_key_pem: null,
      key_fingerprint: null,
    }));
    await world.db.insertInto('agents').values(copies).execute();
    const page = await openConsole(world, browser, organisation.owner);
    await page.click('nav a[href="/console/team"]');
    await page.click(`[data-member="${organisation.owner.id}"] [data-verb="agents"]`);
    await has(page, 'dialog', 'All that are not revoked');
    await page.click('#hand-over');
    await says(page, '1 agent is handed over');
    expect((await one.get('/v1/agents/me')).body.owner_id).toBe(bob.id);
  });

  test('with the mouse: a person is added, gets a one-time sign-in link, which is recorded in the audit, and is removed', async () => {
    const organisation = await world.organisation();
    const page = await openConsole(world, browser, organisation.owner);
    await page.click('nav a[href="/console/team"]');
    await has(page, '#team', 'The last admin');
    expect(await page.value(`document.querySelectorAll('[data-verb="role"], [data-verb="remove"]').length`)).toBe(0);
    await page.click('#member-email');
    await page.type(HOSTILE);
    await page.click('#add');
    await says(page, `${HOSTILE} is added.`);
    const owners = async () => (await organisation.ask('GET', '/owner/owners')).body.owners;
    const [, added] = await owners();
    expect(added).toMatchObject({ email: HOSTILE, role: 'viewer', passkeys: [] });
    await has(page, `[data-member="${added.id}"]`, 'Never signed in');
    await has(page, `[data-member="${organisation.owner.id}"]`, 'Signed in last');
    await expectAccessible(page, 'the team');
    await page.resize(PHONE, 'phone');
    await page.screenshot('team-phone.png');
    await page.resize(DESKTOP);
    await page.prefer('dark');
    await page.screenshot('team.png');
    await page.prefer('light');
    const row = `[data-member="${added.id}"]`;
    await page.click(`${row} [data-verb="link"]`);
    await page.click('#make-link');
    await page.until(`document.querySelector('dialog .command pre') !== null`);
    const link = await page.value<string>(`document.querySelector('dialog .command pre').innerText`);
    await page.screenshot('team-link.png');
    await page.click('#close-link');
    expect(await page.value('document.documentElement.outerHTML')).not.toContain(link.split('#')[1]);
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=20')).body;
    const recorded = rows.filter(({ reason }: { reason: string }) => reason === 'owner_link_made');
    expect(recorded).toMatchObject([{ detail: HOSTILE }]);
    expect(JSON.stringify(rows)).not.toContain(link.split('#')[1]);

    const theirs = await browser.page(PHONE);
    await theirs.open(link);
    await isLive(theirs);
    await theirs.open(`${world.running.baseUrl}/console/team`);
    await has(theirs, 'main', 'Your role is viewer: an admin adds people');
    await theirs.until(`document.querySelector('[data-member]') !== null`);
    expect(await theirs.value(`document.querySelectorAll('main button, #add-form').length`)).toBe(0);
    // The navigation entry of the current page is in view.
    const inSight = `(() => { const { left, right } = document.querySelector('nav [aria-current="page"]').getBoundingClientRect(); return left >= 0 && right <= innerWidth; })()`;
    expect(await theirs.value(inSight)).toBe(true);
    await has(theirs, `[data-member="${added.id}"]`, 'Signed in last');
    await theirs.open(link);
    await theirs.until(`document.body.innerText.includes('was used already')`);
    // A person who is still signed in needs no other link.
    await has(theirs, 'body', 'You are signed in here as');
    await theirs.close();

    await page.click(`${row} [data-verb="remove"]`);
    await page.click('#remove-member');
    await says(page, `${HOSTILE} is removed.`);
    expect(await owners()).toHaveLength(1);
    expect(page.complaints).toEqual([]);
  });

  test('a link is made by admins only, and only for members of their own organisation', async () => {
    const organisation = await world.organisation();
    const approver = await organisation.addOwner('approver');
    const stranger = (await world.organisation()).owner;
    const path = (id: string) => `/owner/owners/${id}/link`;
    expect((await organisation.ask('POST', path(organisation.owner.id), {}, approver)).status).toBe(403);
    expect((await organisation.ask('POST', path(stranger.id), {})).status).toBe(404);
    const seen = await organisation.ask('GET', '/owner/owners', undefined, approver);
    expect(seen.body.owners.map(({ passkeys }: { passkeys: unknown }) => passkeys)).toEqual([null, null]);
  });
});
