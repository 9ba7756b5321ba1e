/** Sentences in a real browser: on cards, on the approval page, in the activity. */
import { expect, test } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { card, goTo, openConsole, PHONE } from '../world/browser/console.ts';
import { givenWorld, shared } from '../world/world.ts';

const SENTENCES = { 'POST /items': 'create an item in **{/place}**: *{/title}*' };
const MARKUP = '</h2><b id="owned">Approved</b> and 0 other fields”';

describeInChromium('sentences', () => {
  const world = givenWorld();
  const organisation = shared(() =>
    world.demoOrganisation({ manifest: { name: 'Shop\u202e & Co', sentences: SENTENCES } }),
  );
  const agent = shared(() => organisation.agent({ name: 'triage' }));
  const browser = shared(() => startBrowser());
  const page = shared(() => openConsole(world, browser, organisation.owner, PHONE));
  const hold = (data: Record<string, unknown>) =>
    agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data });

  test('a card describes the call in a sentence, with values as marked text, and unusual characters pointed out next to them', async () => {
    const id = await hold({ place: 'аcme/shop', title: MARKUP, body: 'x' });
    const at = (rest: string) => `document.querySelector('${card(id)} ${rest}`;
    await page.until(`${at(`.sentence')`)} !== null`);
    expect(await page.value(`${at(`.sentence').innerText`)}`)).toBe(
      'create an item in аcme/shop (“аcme” mixes Latin and Cyrillic letters): “</h2><b id="owned">Approved</b> and 0 other fields⟦U+201D⟧” and 1 other field',
    );
    expect(await page.value(`document.querySelector('#owned')`)).toBeNull();
    expect(await page.value(`${at(`.sentence strong').innerText`)}`)).toBe('аcme/shop');
    expect(await page.value(`${at(`.sentence .note').innerText`)}`)).toContain('mixes Latin and Cyrillic');
    const groundOf = (rest: string) =>
      page.value(`getComputedStyle(document.querySelector('${card(id)} ${rest}')).backgroundColor`);
    expect(await groundOf('.sentence strong')).not.toBe(await groundOf('.sentence'));
    expect(await page.value(`${at(`.about').innerText`)}`)).toMatch(
      /^On Shop⟦U\+202E⟧ & Co · Held by the rule “POST waits”/,
    );
  });

  test('the approval page starts with the sentence, and still shows it after the decision', async () => {
    const id = await hold({ place: 'acme/shop', title: 'Broken login' });
    const opened = await browser.page(PHONE);
    await opened.open(`${world.running.baseUrl}/approve/${id}`);
    await opened.until(`document.querySelector('h1 .sentence') !== null`);
    expect(await opened.value(`document.querySelector('h1').innerText`)).toBe(
      'triage wants to create an item in acme/shop: “Broken login” on Shop⟦U+202E⟧ & Co',
    );
    expect(await opened.value(`document.querySelector('.request-view .details').textContent`)).toMatch(
      /POST waits[\s\S]*id\s*demo/,
    );
    await organisation.deny(id);
    await opened.until(`document.querySelector('.outcome .sentence') !== null`);
    expect(await opened.value(`document.querySelector('.outcome .what').innerText`)).toBe(
      'triage wanted to create an item in acme/shop: “Broken login” on Shop⟦U+202E⟧ & Co',
    );
  });

  test('the activity shows calls as sentences', async () => {
    await goTo(page, `${world.running.baseUrl}/console/activity`);
    // Names of agents are loaded after the rows.
    await page.until(
      `document.querySelector('.entry .line')?.innerText.startsWith('triage asked to create an item in acme/shop: “Broken login” on Shop⟦U+202E⟧ & Co')`,
    );
  });
});
