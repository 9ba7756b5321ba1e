/** People who open a link that was used, or come back where nothing waits for them: their page says what became of it, and where to go on. */
import { describe, expect, test } from 'vitest';
import { Browser } from '../world/browser.ts';
import { confirmAll, consentAsserted } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');

describe.each(ONE_STORE)(`people whose way leads nowhere on %s${postgresNote}`, (store) => {
  const { server, organisation, act } = givenPeople(store);

  test('a link that was used says so, to anybody, and whether an owner has to confirm what was given', async () => {
    const { consent_url: url } = (await act(ANN)).body;
    const browser = new Browser();
    await consentAsserted(server, url, 'ann', browser);
    for (const one of [browser, new Browser()]) {
      const { status, text } = await one.get(url);
      expect([status, text.includes('An owner of the organisation has to confirm')], text).toEqual([200, true]);
      expect(text).not.toContain('The agent can go on');
      expect(text).not.toContain('ann@docs.example');
    }
    await confirmAll(organisation);
    expect((await act(ANN)).status).toBe(200);
    const { text } = await browser.get(url);
    expect(text).toContain('This consent was given');
    expect(text).not.toContain('has to confirm');
    await organisation.ask('POST', '/owner/people/end', { all: true });
    expect((await browser.get(url)).text).not.toContain('is connected');
  });
});
