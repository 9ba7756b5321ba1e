/** Concurrent consents of one person, begun by several agents: one account is kept, and the others are revoked. */
import { describe, expect, test } from 'vitest';
import { Browser } from '../world/browser/browser.ts';
import { govern } from '../world/docs-platform.ts';
import { agentOfPeople, authorise, documentOf, start } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { postgresNote, STORES } from '../world/stores.ts';

const ANN = slack('U-ANN');

describe.each(STORES)(`two consents of one person on %s${postgresNote}`, (store) => {
  const { server, organisation, act } = givenPeople(store);

  /** Lets several agents' consents get to the final question, each with another account. */
  async function atTheQuestion(accounts: string[]) {
    return await Promise.all(
      accounts.map(async (account) => {
        const { body } = await act(ANN, {}, await agentOfPeople(organisation));
        const browser = new Browser();
        await authorise(server, browser, account, await start(browser, body.consent_url));
        return { browser, url: body.consent_url as string };
      }),
    );
  }
  const isGood = async (token: string) =>
    (await fetch(`${server.issuer}/api/items`, { headers: { authorization: `Bearer ${token}` } })).status === 200;

  test('kept concurrently: one account stays, the others are revoked', async () => {
    const applied = await govern(organisation, documentOf(server, { asserted: ['slack'], asserted_consent: 'link' }));
    expect(applied.status, applied.text).toBe(200);
    const asked = await atTheQuestion(['ann-1', 'ann-2', 'ann-3', 'ann-4']);
    const kept = await Promise.all(asked.map(({ browser, url }) => browser.post(`${url}/keep`, {})));
    expect(
      kept.map(({ status }) => status),
      kept.map(({ text }) => text).join(),
    ).toEqual([200, 200, 200, 200]);
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toHaveLength(1);
    const { who } = (await act(ANN)).body.data;
    expect(who).toMatch(/^ann-[1-4]$/);
    const good = await Promise.all(server.given.access.map(isGood));
    expect(good.filter(Boolean)).toHaveLength(1);
  });

  test.each(['at the same time', 'one after the other'])(
    'one consent kept repeatedly in one browser, %s: stored once, and each response says so',
    async (when) => {
      const [{ browser, url }] = (await atTheQuestion(['ann'])) as [{ browser: Browser; url: string }];
      const press = async () => {
        const pressed = new Browser();
        pressed.cookies = [...browser.cookies];
        return { pressed, visit: await pressed.post(`${url}/keep`, {}) };
      };
      const answers =
        when === 'at the same time' ? await Promise.all([press(), press(), press()]) : [await press(), await press()];
      for (const { visit } of answers) {
        expect([visit.status, visit.text.includes('has to confirm it')], visit.text).toEqual([200, true]);
      }
      expect((await organisation.ask('GET', '/owner/people')).body.tokens).toHaveLength(1);
      const { rows } = (await organisation.ask('GET', '/owner/audit?limit=100')).body;
      expect(rows.filter(({ reason }: { reason: string }) => reason === 'person_connected')).toHaveLength(1);
      // Whichever response the browser received shows the person what they gave.
      const mine = new URL('/me/connections', url).href;
      for (const { pressed } of answers) expect((await pressed.get(mine)).text).toContain('ann@docs.example');
      // Another browser cannot keep it, and a kept account cannot be discarded.
      const other = new Browser();
      expect((await other.post(`${url}/keep`, {})).status).toBe(409);
      expect((await browser.post(`${url}/discard`, {})).status).toBe(409);
      // After leaving, repeating the request restores no session; after the token has ended, it is refused.
      const { pressed } = answers[0]!;
      await pressed.post(`${mine}/leave`, {});
      const once = await press();
      expect([once.visit.status, once.visit.headers.getSetCookie()]).toEqual([200, []]);
      expect((await once.pressed.get(mine)).text).not.toContain('ann@docs.example');
      await organisation.ask('POST', '/owner/people/end', { all: true });
      expect((await press()).visit.status).toBe(409);
    },
  );

  test('confirmed concurrently by an owner: one account stays', async () => {
    const asked = await atTheQuestion(['bob-1', 'bob-2', 'bob-3']);
    for (const { browser, url } of asked) expect((await browser.post(`${url}/keep`, {})).status).toBe(200);
    const { tokens } = (await organisation.ask('GET', '/owner/people')).body;
    expect(tokens).toHaveLength(3);
    const confirmed = await Promise.all(
      tokens.map(({ id }: { id: string }) => organisation.ask('POST', `/owner/people/tokens/${id}/confirm`, {})),
    );
    expect(confirmed.map(({ status, text }) => (status === 200 ? status : text))).toEqual([200, 200, 200]);
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toHaveLength(1);
    expect((await act(ANN)).body.data.who).toMatch(/^bob-[1-3]$/);
  });
});
