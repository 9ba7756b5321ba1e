/** A scope that needs more than the platform’s default scopes: the person's next consent requests them. */
import { describe, expect, test } from 'vitest';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { docsManifest, govern } from '../world/docs-platform.ts';
import { authorise, confirmAll, start } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');
const BOB = slack('U-BOB');
const WRITE = { method: 'POST', scope: 'docs:write', data: { title: 'x' } };

describe.each(ONE_STORE)(`scopes that need more than people consented to on %s${postgresNote}`, (store) => {
  const { server, organisation, agent, act, document, connected } = givenPeople(store);
  const needing = (needs: object) =>
    document({
      platforms: { docs: docsManifest(server, { per_person: { enabled: true, asserted: ['slack'] }, needs }) },
    });
  /** Returns the scopes that the consent page names, and those that are requested from the platform. */
  async function asked(url: string, login: string): Promise<{ page: string; scope: string }> {
    const browser = new Browser();
    const { text } = await browser.get(url);
    const to = await start(browser, url);
    await authorise(server, browser, login, to);
    expect((await browser.post(`${url}/keep`, {})).status).toBe(200);
    await confirmAll(organisation);
    return {
      page: /The requested rights: ([^<]*)\./.exec(text)?.[1] ?? '',
      scope: new URL(to).searchParams.get('scope') ?? '',
    };
  }

  test('the consent after a refused call requests the missing scopes together with the granted ones, and the call is made', async () => {
    expect((await govern(organisation, needing({ 'docs:write': ['docs.write'] }))).status).toBe(200);
    await connected(ANN, 'ann');
    expect((await act(ANN)).status).toBe(200);
    const refused = await act(ANN, WRITE);
    expect([refused.status, refused.body.detail]).toEqual([
      412,
      'The person has consented to less than this scope needs.',
    ]);
    // A second refusal adds nothing.
    expect((await act(ANN, WRITE)).body.consent_url).toBe(refused.body.consent_url);
    // On /proxy the text says how to consent, too.
    const raw = await rawClient(() => agent)('POST', '/proxy/main/items', {
      body: JSON.stringify(WRITE.data),
      headers: { 'x-svc-caller': 'id slack:U-ANN' },
    });
    const again = 'This person has to connect the platform again, and consent to more. Give them ';
    expect(refused.body.message).toContain(again);
    expect(raw.body.detail).toContain(`${refused.body.detail} ${again}`);
    expect(raw.body.detail).toContain(refused.body.consent_url);
    const rights = await asked(refused.body.consent_url, 'ann');
    expect(rights).toEqual({
      page: 'openid, email, docs.read, docs.write',
      scope: 'openid email docs.read docs.write',
    });
    expect((await act(ANN, WRITE)).status).toBe(200);
    expect((await act(ANN)).status).toBe(200);
    // Nobody else is asked for more.
    const bob = await act(BOB);
    expect((await asked(bob.body.consent_url, 'bob')).scope).toBe('openid email docs.read');
  });

  test('scopes that were requested and not granted are requested again, without a wider alternative', async () => {
    // The server does not support docs.admin, and grants the others.
    const requested = ['openid', 'email', 'docs.read', 'docs.admin'];
    const needs = { 'docs:write': ['docs.write', 'docs.admin'] };
    const perPerson = { enabled: true, asserted: ['slack'] };
    const docs = docsManifest(server, { per_person: perPerson, needs }, requested);
    expect((await govern(organisation, document({ platforms: { docs } }))).status).toBe(200);
    await connected(ANN, 'ann');
    const refused = await expectStatus(412, act(ANN, WRITE));
    expect((await asked(refused.body.consent_url, 'ann')).scope).toBe(requested.join(' '));
  });
});
