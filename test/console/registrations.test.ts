/** Agents that register themselves, in the console's inbox. */
import { createPrivateKey } from 'node:crypto';
import { expect, test } from 'vitest';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { describeInChromium, type Page, startBrowser } from '../world/browser/chromium.ts';
import { approve, openConsole, PHONE, says, WAITING } from '../world/browser/console.ts';
import { givenWorld, shared } from '../world/world.ts';

const DEMO = [{ platformId: 'demo', scopes: ['demo:read', 'demo:write'] }];

describeInChromium('registrations in the console', () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation({ rules: [{ effect: 'allow' }] }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner));

  /** Registers an agent. Returns its token and the selector of its card. The limit is ten registrations a minute from one IP address. */
  async function register(name: string, body: Record<string, unknown> = {}, owner: OwnerTable = organisation.owner) {
    const asked = await send(
      `${world.running.baseUrl}/v1/register`,
      jsonPost({ owner_id: owner.id, agent_name: name, requested_scopes: DEMO, ...body }),
    );
    expect(asked.status, asked.text).toBe(202);
    const { registrations } = (await organisation.ask('GET', '/owner/registrations?status=pending')).body;
    const { id } = registrations.find((one: { agent_name: string }) => one.agent_name === name);
    return {
      id: id as string,
      token: asked.body.registration_token as string,
      card: `[data-entry="registration-${id}"]`,
    };
  }
  const open = async (on: Page, selector: string) => {
    await on.click(`${selector} .opener`);
    await on.until(`document.querySelector('${selector} .decide') !== null`);
  };
  const textOf = (on: Page, selector: string) => on.value<string>(`document.querySelector('${selector}').innerText`);
  const read = async (id: string) => (await organisation.ask('GET', `/owner/registrations/${id}`)).body;
  const claim = (token: string) => send(`${world.running.baseUrl}/v1/register/claim-key/${token}`, {});

  test('a registration appears immediately; the owner narrows and approves it, and the agent collects its key', async () => {
    await page.until(`${WAITING} === 0`);
    const scopes = [{ platformId: 'demo', scopes: ['demo:read', 'demo:write', 'demo:gone'] }];
    const asked = await register('newcomer', {
      agent_description: 'Sorts the post.',
      requested_scopes: [...scopes, { platformId: 'nowhere', scopes: ['nowhere:all'] }],
    });
    await page.until(`document.title.startsWith('(1)')`);
    expect(await textOf(page, `${asked.card} .card-head`)).toMatch(
      /^newcomer asks to become an agent\s+Nobody checked it/,
    );
    await open(page, asked.card);
    const shown = await textOf(page, asked.card);
    for (const words of [
      'Nobody checked who this is.',
      'Sorts the post.',
      'Waits until',
      `it names ${organisation.owner.email} (you)`,
    ])
      expect(shown).toContain(words);
    expect(shown).toMatch(/Policy\s+it gets default version 1/);
    expect(shown).toMatch(/demo:gone not known here/);
    expect(shown).toMatch(/nowhere:all not known here/);
    const chosen = `[...document.querySelectorAll('.terms input:checked')].map((one) => one.parentNode.innerText.trim())`;
    expect(await page.value(chosen)).toEqual(['demo:read', 'demo:write']);
    expect(await page.value(`document.querySelectorAll('.terms input:disabled').length`)).toBe(2);
    expect((await claim(asked.token)).status).toBe(409);
    await page.value(
      `[...document.querySelectorAll('.terms .choice')].find((one) => one.innerText.includes('demo:write')).querySelector('input').click()`,
    );
    await page.until(`document.querySelector('.approve:enabled')?.innerText === 'Approve (1 scope)…'`);
    await approve(page);
    await says(page, 'Granted: demo:read on demo. Left out: demo:write on demo.');
    await says(page, 'Dropped, because no platform has it: demo:gone on demo, nowhere:all on nowhere.');
    await says(page, 'It can collect its key within the hour, and call from then on.');
    expect(await read(asked.id)).toMatchObject({
      status: 'approved',
      granted: [{ platformId: 'demo', scopes: ['demo:read'] }],
    });
    const key = await expectStatus(200, claim(asked.token));
    expect(createPrivateKey(key.body.private_key).asymmetricKeyType).toBe('rsa');
    await page.until(`${WAITING} === 0`);
  });

  test('clicks in the first half second are ignored; a hostile name and description are text with visible hidden characters', async () => {
    const name = '<img src=x onerror=alert(1)>\u202egpj.\u200b';
    const asked = await register(name, {
      agent_description: '<script>document.title="owned"</script>\u2066\nSecond line',
      requested_scopes: [{ platformId: 'demo\u202e', scopes: ['<b>all</b>\u200b'] }],
    });
    await page.until(`document.querySelector('${asked.card}') !== null`);
    // Clicks in the same task in which the card appears.
    const early = await page.value<boolean>(`new Promise((seen) => {
        const watching = new MutationObserver(() => {
          const button = document.querySelector('.decide .approve');
          if (!button) return;
          watching.disconnect();
          seen(button.disabled);
          button.click();
        });
        watching.observe(document.body, { childList: true, subtree: true });
        document.querySelector('${asked.card} .opener').click();
      })`);
    expect(early, 'it takes no click yet').toBe(true);
    const shown = await textOf(page, asked.card);
    expect(shown).toContain('<img src=x onerror=alert(1)>⟦U+202E⟧gpj.⟦U+200B⟧');
    expect(shown).toContain('<script>document.title="owned"</script>⟦U+2066⟧');
    expect(shown).toContain('2 invisible characters');
    expect(shown).toContain('<b>all</b>⟦U+200B⟧');
    expect(await page.value(`document.querySelectorAll('.card img, .card script, .card b').length`)).toBe(0);
    await page.until(`document.querySelector('.approve')?.innerText === 'Approve (no scopes)…'`);
    await page.click('.deny');
    await page.until(
      `document.querySelector('dialog')?.innerText.includes('⟦U+202E⟧gpj.⟦U+200B⟧ asks to become an agent')`,
    );
    expect((await read(asked.id)).status, 'it asks once more').toBe('pending');
    await page.click('#deny');
    await says(page, 'Rejected by');
    expect((await read(asked.id)).status).toBe('rejected');
    expect((await claim(asked.token)).status).toBe(410);
  });

  test('by keyboard: a opens, a second a lists the grants for confirmation, Enter approves; d and Enter reject', async () => {
    const [yes, no] = [await register('by key'), await register('not by key')];
    await page.until(`${WAITING} === 2`);
    await page.value(`document.querySelector('${yes.card} .opener').focus()`);
    await page.press('a');
    await says(page, 'Read it first');
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    expect((await read(yes.id)).status).toBe('pending');
    await page.press('a');
    await page.until(`document.querySelector('dialog')?.innerText.includes('demo:read on demo demo:write on demo')`);
    await page.press('Escape');
    await page.until(`document.querySelector('dialog') === null`);
    expect((await read(yes.id)).status).toBe('pending');
    await page.press('a');
    await page.until(`document.querySelector('dialog #approve') === document.activeElement`);
    await page.press('Enter');
    await says(page, 'Granted: demo:read on demo, demo:write on demo.');
    await page.until(`document.activeElement.closest('${no.card}') !== null`);
    await page.press('Enter');
    await page.until(`document.querySelector('${no.card} .approve:enabled') !== null`);
    await page.press('d');
    await page.until(`document.querySelector('dialog #deny') === document.activeElement`);
    await page.press('Enter');
    await says(page, 'Rejected by');
    expect([(await read(yes.id)).status, (await read(no.id)).status]).toEqual(['approved', 'rejected']);
  });

  test('a registration is rejected together with all from the same network, and with no other', async () => {
    const own = await register('another network');
    await world.db.updateTable('registrations').set({ source: '192.0.2.7' }).where('id', '=', own.id).execute();
    const [one, two] = [await register('flood one'), await register('flood two')];
    await page.until(`${WAITING} === 3`);
    await open(page, one.card);
    await page.click(`${one.card} .deny`);
    await page.until(`document.querySelector('#deny-all') !== null`);
    expect(await textOf(page, 'dialog')).toContain('Also reject the other one from 127.0.0.1 that waits');
    await page.click('#deny-all');
    await page.click('#deny');
    await page.until(`${WAITING} === 1`);
    const states = await Promise.all([one, two, own].map(async ({ id }) => (await read(id)).status));
    expect(states).toEqual(['rejected', 'rejected', 'pending']);
    await organisation.ask('POST', `/owner/registrations/${own.id}/reject`);
  });

  test('a registration with the name of an existing agent is approved only under another name', async () => {
    const asked = await register('triage');
    await page.until(`document.querySelector('${asked.card}') !== null`);
    await open(page, asked.card);
    // The name was free when the card was opened, and is in use when it is decided.
    expect(await page.value(`document.querySelector('#new-name')`)).toBe(null);
    await organisation.agent({ name: 'triage' });
    await approve(page);
    await says(page, 'There is an agent "triage"');
    expect((await read(asked.id)).status).toBe('pending');
    await page.until(
      `document.querySelector('${asked.card}').innerText.includes('You have an agent called triage already')`,
    );
    await page.press('a');
    await says(page, 'cannot be approved yet');
    expect(await page.value(`document.querySelector('.approve').disabled`)).toBe(true);
    // At the edge of the window, the bar with the buttons covers it.
    await page.value(`document.querySelector('#new-name').scrollIntoView({ block: 'center', behavior: 'instant' })`);
    await page.click('#new-name');
    await page.type('second triage');
    await approve(page);
    await says(page, 'it is an agent now');
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    expect(agents.map(({ name }: { name: string }) => name)).toContain('second triage');
  });

  test('an approver decides only on registrations for themselves, and a viewer on none: both read why', async () => {
    const asked = await register('for the owner');
    const approver = await organisation.addOwner('approver');
    const theirs = await openConsole(world, browser, approver);
    await open(theirs, asked.card);
    expect(await textOf(theirs, '.decide')).toBe(
      `It asks ${organisation.owner.email}: that owner or an admin decides.`,
    );
    expect(await theirs.value(`document.querySelectorAll('.decide button, .terms').length`)).toBe(0);
    expect(await textOf(theirs, asked.card)).toMatch(/What it asks for\s+demo\s+demo:read\s+demo:write/);
    await theirs.press('a', 'd');
    expect(await theirs.value(`document.querySelector('dialog')`)).toBe(null);
    const own = await register('for the approver', {}, approver);
    await theirs.until(`document.querySelector('${own.card}') !== null`);
    await open(theirs, own.card);
    await approve(theirs);
    await says(theirs, 'it is an agent now');
    const viewer = await openConsole(world, browser, await organisation.addOwner('viewer'));
    await open(viewer, asked.card);
    expect(await textOf(viewer, '.decide')).toContain('Your role is viewer');
    await viewer.close();
    await theirs.close();
  });

  test('the card of a registration that was decided elsewhere, or has expired, shows the result', async () => {
    const { registrations } = (await organisation.ask('GET', '/owner/registrations?status=pending')).body;
    const [{ id }] = registrations;
    const selector = `[data-entry="registration-${id}"]`;
    await open(page, selector);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    expect((await organisation.ask('POST', `/owner/registrations/${id}/reject`)).status).toBe(200);
    await page.until(`document.querySelector('${selector}').dataset.state === 'over'`);
    await page.until(
      `document.querySelector('${selector}').innerText.includes('Rejected by ${organisation.owner.email}')`,
    );
    expect(await page.value(`document.querySelector('.approve')`)).toBe(null);
    const late = await register('too late');
    await page.until(`document.querySelector('${late.card}') !== null`);
    await open(page, late.card);
    await page.until(`document.querySelector('.approve:enabled') !== null`);
    // Only the registration expires, not the session.
    await world.db
      .updateTable('registrations')
      .set({ expires_at: Date.now() - 1 })
      .where('id', '=', late.id)
      .execute();
    await approve(page);
    await says(page, 'Nobody decided in time. It has to register again.');
  });

  test('on a phone of 360 pixels nothing is wider than the page', async () => {
    const asked = await register('w'.repeat(100), {
      agent_description: 'x'.repeat(1000),
      requested_scopes: [...DEMO, { platformId: 'p'.repeat(64), scopes: ['s'.repeat(256)] }],
    });
    await page.resize(PHONE, 'phone');
    await page.until(`document.querySelector('${asked.card}') !== null`);
    await open(page, asked.card);
    expect(await page.value('document.documentElement.scrollWidth')).toBe(360);
    const wide = await page.value(
      `[...document.querySelectorAll('.card *')].filter((one) => one.getBoundingClientRect().right > 360).length`,
    );
    expect(wide).toBe(0);
    await approve(page);
    await says(page, 'Granted: demo:read on demo, demo:write on demo.');
  });

  test('the pages caused no violation of their Content-Security-Policy', () => {
    expect(page.complaints.filter((one) => !/status of 4\d\d/.test(one))).toEqual([]);
  });
});
