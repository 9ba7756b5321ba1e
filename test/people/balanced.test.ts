/** Two replicas behind one address: a consent can be continued at either, and a long poll at the other is notified. */
import { describe, expect, test } from 'vitest';
import { send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { authorise, onward, start } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { givenReplica } from '../world/replica.ts';
import { postgresNote, STORES } from '../world/stores.ts';

describe.runIf(STORES.includes('postgres'))(`a consent with two replicas on postgres${postgresNote}`, () => {
  const people = givenPeople('postgres');
  const { server, issuer, world, organisation, agent, act } = people;
  const replica = givenReplica(world, { behind: true });

  /** The same address at the other replica. */
  const there = (url: string) => url.replace(world.running.baseUrl, replica.baseUrl);
  const isBack = (path: string) => (url: URL) => url.pathname === path;

  test('begun at one, signed in and authorised at the other, kept at the first; the agent polling the other is notified', async () => {
    const other = replica.asks(agent);
    const ann = await people.assertion('ann');
    const { body } = await act(ann);
    expect((await act(ann, {}, other)).body.consent_token).toBe(body.consent_token);
    const poll = there(world.running.baseUrl) + body.poll_url;
    const waiting = send(`${poll}?wait=50`, {});

    const browser = new Browser();
    browser.stopAt = isBack('/me/consent/signed-in');
    const signedIn = await issuer.signIn(browser, 'ann', await start(browser, body.consent_url));
    browser.stopAt = undefined;
    const toPlatform = onward(await browser.get(there(signedIn.url)));
    browser.stopAt = isBack(`/console/connected/${organisation.id}`);
    const back = await authorise(server, browser, 'ann', toPlatform);
    browser.stopAt = undefined;
    const asked = await browser.get(there(back.url));
    expect(asked.text).toContain('Use the account ann@docs.example?');
    // Completed at the other replica, the consent is completed here, too.
    expect((await browser.get(back.url)).text).not.toContain('Use the account');
    expect((await browser.post(`${body.consent_url}/keep`, {})).status).toBe(200);
    expect((await waiting).body.status).toBe('completed');
    for (const by of [agent, other]) expect((await act(ann, {}, by)).body.data.who).toBe('ann');

    // A token that an owner ends at one replica is refused by the other at its next call.
    const [{ person_id }] = (await organisation.ask('GET', '/owner/people')).body.tokens;
    expect((await organisation.ask('POST', '/owner/people/end', { person_id })).body.ended).toBe(1);
    for (const by of [other, agent]) expect((await act(ann, {}, by)).body.reason).toBe('not_consented');
    expect((await act(slack('U-ANN'), {}, other)).body.reason).toBe('not_consented');
  });
});
