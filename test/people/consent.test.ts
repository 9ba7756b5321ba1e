/** One token per person, from a call without a token to calls with each person's own: at a real OAuth server and a real issuer. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { evidenceOf } from '../world/evidence.ts';
import { authorise, confirmAll, consentAsserted, onward, start, statusOf } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { postgresNote, STORES } from '../world/stores.ts';

describe.each(STORES)(`one token per person on %s${postgresNote}`, (store) => {
  const people = givenPeople(store);
  const { server, issuer, world, organisation, agent, act, who } = people;

  test('two asserted people consent and an owner confirms; then each call has its person’s own token', async () => {
    const refused = await act(slack('U-ANN'));
    expect([refused.status, refused.body.error, refused.body.reason]).toEqual([
      412,
      'consent_required',
      'not_consented',
    ]);
    const { consent_url, consent_token, poll_url, expires_at } = refused.body;
    expect([consent_url, poll_url]).toEqual([
      `${world.running.baseUrl}/me/consent/${consent_token}`,
      `/v1/consent/caller/status/${consent_token}`,
    ]);
    expect(Date.parse(expires_at) - world.running.broker.clock()).toBeGreaterThan(29 * 60_000);
    // A repeated call returns the same consent.
    expect((await act(slack('U-ANN'))).body.consent_token).toBe(consent_token);
    expect((await statusOf(world, consent_token)).body).toEqual({ status: 'pending', platform_id: 'docs', expires_at });

    const waiting = statusOf(world, consent_token, '?wait=20');
    const done = await consentAsserted(server, consent_url, 'ann');
    expect([done.status, done.text]).toEqual([200, expect.stringContaining('has to confirm it')]);
    expect((await waiting).body.status).toBe('completed');

    const unconfirmed = await act(slack('U-ANN'));
    expect([unconfirmed.status, unconfirmed.body.reason, unconfirmed.body.consent_url]).toEqual([
      412,
      'not_consented',
      undefined,
    ]);
    expect(unconfirmed.body.message).toContain('An owner has to confirm');
    const [given] = (await organisation.ask('GET', '/owner/people')).body.tokens;
    expect(given).toMatchObject({
      state: 'unconfirmed',
      account: 'ann@docs.example',
      named_by: 'slack',
      verified: false,
    });
    await confirmAll(organisation);

    await consentAsserted(server, (await act(slack('U-BOB'))).body.consent_url, 'bob');
    await confirmAll(organisation);
    expect([await who(slack('U-ANN')), await who(slack('U-BOB')), await who(slack('U-ANN'))]).toEqual([
      'ann',
      'bob',
      'ann',
    ]);
    expect(server.bearers.slice(-3)[0]).toBe(server.bearers.at(-1));
    expect(new Set(server.bearers.slice(-3)).size).toBe(2);
    // Nobody else's calls are made: not with a similar id, not with another letter case, and never with another token.
    for (const other of [slack('U-ANN '), slack('u-ann'), slack('U-EVE')]) expect((await act(other)).status).toBe(412);
    expect((await act(undefined)).body.reason).toBe('no_caller');
    expect((await act({ source: 'teams', id: 'U-ANN' })).body.reason).toBe('asserted_not_allowed');
  });

  test('a consent expires after exactly 30 minutes, and a later call gets another one', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    onTestFinished(() => void vi.useRealTimers());
    const { consent_token: token, expires_at } = (await act(slack('U-ANN'))).body;
    const end = Date.now() + 30 * 60_000;
    expect(Date.parse(expires_at)).toBe(end);
    for (const [at, status] of [
      [end - 1, 'pending'],
      [end, 'expired'],
    ] as const) {
      vi.setSystemTime(at);
      expect((await statusOf(world, token)).body).toEqual({ status, platform_id: 'docs', expires_at });
    }
    expect((await act(slack('U-ANN'))).body.consent_token).not.toBe(token);
  });

  test('an address that the platform did not verify is marked for the person and for the confirming owner', async () => {
    server.unverified.add('ann');
    const { consent_url: url } = (await act(slack('U-ANN'))).body;
    const browser = new Browser();
    const asked = await authorise(server, browser, 'ann', await start(browser, url));
    server.unverified.clear();
    expect(asked.text).toContain('Use the account ann@docs.example (address not verified)?');
    expect((await browser.post(`${url}/keep`, {})).status).toBe(200);
    const { body } = await organisation.ask('GET', '/owner/people?state=unconfirmed');
    expect(body.tokens.map(({ account }: { account: string }) => account)).toEqual([
      'ann@docs.example (address not verified)',
    ]);
  });

  test('the receipt says that a caller was identified, with a random id, and never who it is', async () => {
    await consentAsserted(server, (await act(slack('PERSON-7'))).body.consent_url, 'ann');
    await confirmAll(organisation);
    const answer = await expectStatus(200, act(slack('PERSON-7')));
    const { row, payload, receipt } = await evidenceOf(world, agent, answer.body._meta.audit_id);
    const [given] = (await organisation.ask('GET', '/owner/people')).body.tokens;
    expect(payload.caller).toEqual({ identity: 'asserted', person_id: given.person_id });
    expect(JSON.stringify([row, payload, receipt, given])).not.toContain('PERSON-7');
  });

  test('a verified person signs in at the issuer first, and only that person can continue', async () => {
    const ann = () => people.assertion('ann');
    const refused = await act(await ann());
    expect([refused.status, refused.body.reason], refused.text).toEqual([412, 'not_consented']);
    const { consent_url } = refused.body;

    // Bob has Ann's link, but is another person at the issuer.
    const bobs = new Browser();
    const wrong = await issuer.signIn(bobs, 'bob', await start(bobs, consent_url));
    expect([wrong.status, wrong.text]).toEqual([403, expect.stringContaining('somebody else')]);

    const browser = new Browser();
    const signedIn = await issuer.signIn(browser, 'ann', await start(browser, consent_url));
    const asked = await authorise(server, browser, 'ann', onward(signedIn));
    expect(asked.text).toContain('Use the account ann@docs.example?');
    const done = await browser.post(`${consent_url}/keep`, {});
    expect([done.status, done.text]).toEqual([200, expect.stringContaining('The agent can go on')]);
    expect(await who(await ann())).toBe('ann');
    expect((await act(await people.assertion('bob'))).status).toBe(412);
    // The same name from a source is another person.
    expect((await act(slack('ann'))).status).toBe(412);
  });
});
