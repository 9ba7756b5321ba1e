/** People who open a used link, or return from the platform without a pending consent: the page says what happened, and how to continue. */
import { describe, expect, test } from 'vitest';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { browserOf } from '../world/browser/connecting.ts';
import { authorise, confirmAll, consentAsserted, start } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');

describe.each(ONE_STORE)(`people without a pending consent on %s${postgresNote}`, (store) => {
  const { server, world, organisation, act } = givenPeople(store);

  /** Returns the callback URL from the platform, without opening it. */
  async function wayBack(browser: Browser, to: string): Promise<string> {
    const { baseUrl } = world.running;
    browser.stopAt = ({ origin, pathname }) => origin === baseUrl && pathname.startsWith('/console/connected/');
    const { url } = await authorise(server, browser, 'ann', to);
    browser.stopAt = undefined;
    return url;
  }
  const tells = ({ status, text }: Visit, words: string, code = 400) => {
    expect([status, text.includes(words)], text).toEqual([code, true]);
    expect(text).not.toContain('Back to the connections');
  };
  const OPEN_AGAIN = 'Open the link of the consent again';

  test('of two tabs the first one is told to open the link again, and the second can continue', async () => {
    const { consent_url: url } = (await act(ANN)).body;
    const browser = new Browser();
    const first = await wayBack(browser, await start(browser, url));
    const second = await wayBack(browser, await start(browser, url));
    tells(await browser.get(first), OPEN_AGAIN);
    expect((await browser.get(second)).text).toContain('Use the account ann@docs.example?');
    // The same callback once more, by "back" and "forward".
    tells(await browser.get(second), OPEN_AGAIN);
    expect((await browser.get(url)).text).toContain('Use the account ann@docs.example?');
  });

  test('in another browser the callback page has no link to the console, except for an owner who connects a platform', async () => {
    const { consent_url: url } = (await act(ANN)).body;
    const browser = new Browser();
    const back = await wayBack(browser, await start(browser, url));
    tells(await new Browser().get(back), OPEN_AGAIN);
    const unknown = new URL(back);
    unknown.searchParams.set('state', `sta_${'A'.repeat(43)}`);
    const owners = await browserOf(world, organisation.owner).get(unknown.href);
    expect([owners.status, owners.text.includes('Back to the connections')]).toEqual([400, true]);
  });

  test('after the link has expired the page says so, and to ask for a new one', async () => {
    const { consent_url: url } = (await act(ANN)).body;
    const browser = new Browser();
    const back = await wayBack(browser, await start(browser, url));
    world.clock.skewMs = 31 * 60_000;
    tells(await browser.get(back), 'it is valid for 30 minutes. Ask for a new one', 409);
  });

  test('after declining at the platform, or a failure of its server, the person can begin again', async () => {
    const { consent_url: url } = (await act(ANN)).body;
    const browser = new Browser();
    const ledBack = async ({ status, text }: Visit, code: number) => {
      expect([status, text.includes('This cannot go on')], text).toEqual([code, true]);
      const [, path = ''] = /<a class="button primary" href="([^"]+)">Begin again</.exec(text) ?? [];
      expect(new URL(path, url).href, text).toBe(url);
      expect((await browser.get(url)).text).toContain('Connect your Docs account');
    };
    const asked = await browser.get(await start(browser, url));
    const declined = await browser.get(`${asked.url}/abort`);
    await ledBack(declined, 403);
    const reloaded = await browser.get(declined.url);
    await ledBack(reloaded, 400);
    expect(reloaded.text).toContain('This response was used already');
    // Another browser is not led to the consent.
    const other = await new Browser().get(declined.url);
    tells(other, OPEN_AGAIN);
    expect(other.text).not.toContain('Begin again');
    const back = await wayBack(browser, await start(browser, url));
    await server.down();
    await ledBack(await browser.get(back), 502);
    await server.up();
    expect((await consentAsserted(server, url, 'ann', browser)).text).toContain('Your account is connected.');
  });

  test('after discarding an account the person can begin again with another one', async () => {
    const { consent_url: url } = (await act(ANN)).body;
    const browser = new Browser();
    await authorise(server, browser, 'bob', await start(browser, url));
    const { text } = await browser.post(`${url}/discard`, {});
    expect(text).toContain(`href="${new URL(url).pathname}">Begin again<`);
    browser.cookies = browser.cookies.filter(({ name }) => name.startsWith('svc_'));
    expect((await consentAsserted(server, url, 'ann', browser)).text).toContain('Your account is connected.');
  });

  test('a used link says so in every browser, and whether an owner has to confirm the account', async () => {
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
    expect(text).toContain('This consent was already given');
    expect(text).not.toContain('has to confirm');
    await organisation.ask('POST', '/owner/people/end', { all: true });
    expect((await browser.get(url)).text).not.toContain('is connected');
  });
});
