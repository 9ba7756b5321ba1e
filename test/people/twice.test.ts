/** One person, asked by two agents at once: one account is kept, the other is ended where it is from. */
import { describe, expect, test } from 'vitest';
import { Browser } from '../world/browser.ts';
import { govern } from '../world/docs-platform.ts';
import { agentOfPeople, authorise, documentOf, start } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { postgresNote, STORES } from '../world/stores.ts';

const ANN = slack('U-ANN');

describe.each(STORES)(`two consents of one person on %s${postgresNote}`, (store) => {
  const { server, organisation, act } = givenPeople(store);

  /** Of several agents, each with another account, as far as the question whether it is kept. */
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

  test('that are kept at the same time', async () => {
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

  test('that an owner confirms at the same time', async () => {
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
