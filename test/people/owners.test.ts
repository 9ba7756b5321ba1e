/** Owners and the people of their organisation: counts, confirmation, ending, the platform setting, and trusted issuers. */
import { describe, expect, test } from 'vitest';
import { deletePersonTokens } from '../../broker/store/people.ts';
import { expectStatus } from '../world/agent.ts';
import { docsManifest, VALUES } from '../world/docs-platform.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { consentAsserted, copyTokens } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { postgresNote, STORES } from '../world/stores.ts';

const ANN = slack('U-ANN');
const BOB = slack('U-BOB');

describe.each(STORES)(`owners and people on %s${postgresNote}`, (store) => {
  const { server, issuer, world, organisation, act, assertion, connected, document } = givenPeople(store);
  const people = async (query = '') => (await organisation.ask('GET', `/owner/people${query}`)).body;

  test('tokens are counted by platform and state, and those that wait can be listed separately', async () => {
    await connected(ANN, 'ann');
    await consentAsserted(server, (await act(BOB)).body.consent_url, 'bob');
    const { tokens, platforms } = await people();
    expect(tokens).toHaveLength(2);
    expect(platforms).toEqual([
      {
        platform_id: 'docs',
        name: 'Docs',
        per_person: { enabled: true, asserted: ['slack'] },
        unconfirmed: 1,
        active: 1,
        reauth_needed: 0,
        connections: [{ id: tokens[0].connection_id, label: 'main' }],
      },
    ]);
    const waiting = (await people('?state=unconfirmed')).tokens;
    expect(waiting.map(({ account }: { account: string }) => account)).toEqual(['bob@docs.example']);
    expectEnvelope(await organisation.ask('GET', '/owner/people?state=all'), 400, 'invalid_request');
  });

  test('tokens are listed in pages, oldest first, also when some are ended between two pages', async () => {
    await connected(ANN, 'ann');
    const [ann] = (await people()).tokens;
    await copyTokens(world, organisation, 5);
    await consentAsserted(server, (await act(BOB)).body.consent_url, 'bob');
    const [bob] = (await people('?state=unconfirmed')).tokens;
    const walked = async (query: string, between: (page: { tokens: { id: string }[] }) => Promise<unknown>) => {
      const pages: { id: string; created_at: string }[][] = [];
      for (let next: string | null = ''; next !== null && pages.length < 10; ) {
        const page = await people(`?limit=2${query}${next === '' ? '' : `&cursor=${next}`}`);
        pages.push(page.tokens);
        if (page.next !== null) await between(page);
        next = page.next;
      }
      return pages;
    };
    const all = await walked('', async () => {});
    expect(all.map((page) => page.length)).toEqual([2, 2, 2, 1]);
    const times = all.flat().map(({ created_at }) => created_at);
    expect(times).toEqual([...times].sort());
    expect(new Set(all.flat().map(({ id }) => id)).size).toBe(7);
    const waiting = await walked('&state=unconfirmed', async () => {});
    expect(waiting.flat().map(({ id }) => id)).toEqual([bob.id]);
    expect(await walked('&platform=other', async () => {})).toEqual([[]]);
    const given = await walked('&state=given&platform=docs', ({ tokens }) =>
      expectStatus(200, organisation.ask('POST', '/owner/people/end', { id: tokens.at(-1)!.id })),
    );
    const [first] = given.flat();
    expect(first!.id).toBe(ann.id);
    expect(given.map((page) => page.length)).toEqual([2, 2, 2]);
  });

  test.each(['x', Buffer.from('[1]').toString('base64url'), Buffer.from('["a","b"]').toString('base64url')])(
    'a cursor that is not of a page (%s) is refused',
    async (cursor) => {
      const answer = await organisation.ask('GET', `/owner/people?cursor=${cursor}`);
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.text).toContain('begin again without it');
    },
  );

  test('a test of the connection says that people give tokens for it, and requires no secret', async () => {
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    const tested = await organisation.ask('POST', `/owner/connections/${connections[0].id}/test`, {});
    expect(tested.body).toMatchObject({
      ok: false,
      upstream_status: null,
      detail: 'Each person gives their own token for this connection, so it has no token to test the platform with.',
    });
    expect(server.bearers).toEqual([]);
  });

  test('the plan of a governance file that renames the connection says that the tokens of people end', async () => {
    await connected(ANN, 'ann');
    const text = JSON.stringify(document({ connections: { renamed: { platform: 'docs' } } }));
    const plan = await organisation.ask('POST', '/owner/governance/plan', { text, values: VALUES });
    expect(plan.body.changes).toContainEqual({
      action: 'delete',
      kind: 'connection',
      name: 'main',
      details: ['platform: docs', 'tokens of people for it end, and are revoked'],
    });
    expect((await organisation.ask('POST', '/owner/governance/apply', { text, values: VALUES })).status).toBe(200);
    expect((await people()).tokens).toEqual([]);
  });

  test('all tokens can be ended together, and are revoked', async () => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    for (const body of [{}, { all: false }, { all: true, id: crypto.randomUUID() }]) {
      const answer = await organisation.ask('POST', '/owner/people/end', body);
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.body.detail).toContain('send exactly one of id, person_id, caller and connection_id, or all: true');
    }
    expect((await organisation.ask('POST', '/owner/people/end', { all: true })).body).toEqual({ ended: 2, revoked: 2 });
    expect([(await act(ANN)).status, (await act(BOB)).status]).toEqual([412, 412]);
  });

  test('the record says whose tokens ended, and for which connection, also when they were named by their id', async () => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    const [{ id, person_id, connection_id }] = (await people()).tokens;
    await expectStatus(200, organisation.ask('POST', '/owner/people/end', { id }));
    await expectStatus(200, organisation.ask('POST', '/owner/people/end', { all: true }));
    const { rows } = (await organisation.ask('GET', '/owner/audit?reason=person_ended')).body;
    expect(rows[1]).toMatchObject({ platform_id: 'docs', connection_id, flags: { change: { ended: 1, person_id } } });
    expect(rows[0]).toMatchObject({ platform_id: null, connection_id: null, flags: { change: { ended: 1 } } });
  });

  test('the tokens of more people than one statement can name end together', async () => {
    await connected(ANN, 'ann');
    const [{ id }] = (await people()).tokens;
    const ids = [...Array.from({ length: 70_000 }, () => crypto.randomUUID()), id];
    const ended = await deletePersonTokens(world.db, organisation.id, ids);
    expect(ended.map((one) => one.id)).toEqual([id]);
  });

  test('a change of the platform’s address warns that tokens of people will be sent there', async () => {
    await connected(ANN, 'ann');
    await consentAsserted(server, (await act(BOB)).body.consent_url, 'bob');
    const other = { base_url: 'https://other.example/api' };
    const told = 'The credentials of 2 people are sent to https://other.example from the next call on.';
    const manifest = docsManifest(server, { per_person: { enabled: true, asserted: ['slack'] }, ...other });
    const planned = await organisation.ask('POST', '/owner/governance/plan', {
      text: JSON.stringify({ platforms: { docs: manifest } }),
      values: VALUES,
    });
    expect(planned.status, planned.text).toBe(200);
    expect(planned.body.warnings).toEqual([expect.stringContaining(`platforms.docs: ${told}`)]);
    const tried = await organisation.ask('POST', '/owner/platforms/docs', {
      entry: manifest,
      version: 1,
      dry_run: true,
    });
    expect(tried.body.warnings, tried.text).toEqual([told]);
  });

  test('switching tokens per person on or off applies from the next call, is recorded, and never uses another token', async () => {
    await connected(ANN, 'ann');
    const set = (body: object, platform = 'docs') =>
      organisation.ask('POST', `/owner/platforms/${platform}/per-person`, body);
    expect((await set({ enabled: true, asserted: [] })).body).toEqual({ per_person: { enabled: true, asserted: [] } });
    expect((await act(ANN)).body.reason).toBe('asserted_not_allowed');
    expect((await set({ enabled: true, asserted: ['slack'], asserted_consent: 'link' })).status).toBe(200);
    expect((await act(ANN)).body.data.who).toBe('ann');
    await consentAsserted(server, (await act(BOB)).body.consent_url, 'bob');
    expect((await act(BOB)).body.data.who).toBe('bob');
    expect((await set({ enabled: false })).status).toBe(200);
    // The connection has no token of its own, and a person's is not used instead.
    expect((await act(ANN)).body.error).toBe('platform_not_connected');
    const { rows } = (await organisation.ask('GET', '/owner/audit?reason=per_person_changed')).body;
    expect(rows[0]).toMatchObject({ flags: { change: { enabled: false, asserted: [] } } });
    expectEnvelope(await set({ enabled: true, asserted: ['Not A Source'] }), 400, 'invalid_request');
    expectEnvelope(await set({ enabled: true }, 'nothing'), 404, 'not_found');
  });

  test('tokens per person cannot be switched on for a platform without OAuth', async () => {
    const demo = await world.demoOrganisation();
    const answer = await demo.ask('POST', '/owner/platforms/demo/per-person', { enabled: true });
    expectEnvelope(answer, 409, 'conflict');
  });

  test('an issuer can be trusted, changed and removed, with effect at the next call', async () => {
    const caller = await assertion('ann');
    expect((await act(caller)).body.reason).toBe('not_consented');
    const list = async () => (await organisation.ask('GET', '/owner/caller-issuers')).body.caller_issuers;
    const [known] = await list();
    expect(known).toMatchObject({ issuer: issuer.issuer, audience: 'agents' });
    const trust = (body: object) => organisation.ask('POST', '/owner/caller-issuers', body);
    const other = { issuer: 'https://id.other.example', audience: 'agents' };
    expect((await trust(other)).body.caller_issuers).toEqual([known, other]);
    expect((await trust({ ...known, audience: 'others' })).status).toBe(200);
    expect((await act(caller)).body.reason).toBe('no_caller');
    const remove = (address: string) => organisation.ask('POST', '/owner/caller-issuers/remove', { issuer: address });
    expect((await remove(issuer.issuer)).body.caller_issuers).toEqual([other]);
    expectEnvelope(await remove(issuer.issuer), 409, 'conflict');
    for (const bad of [{ issuer: 'http://id.example', audience: 'x' }, { issuer: 'https://id.example' }, {}])
      expectEnvelope(await trust(bad), 400, 'invalid_request');
    const { rows } = (await organisation.ask('GET', '/owner/audit?reason=organisation_changed')).body;
    expect(rows).toHaveLength(3);
  });

  test('a change of a trusted issuer is recorded with its terms: whoever has the keys decides who is believed', async () => {
    const noted = async () => {
      const { rows } = (await organisation.ask('GET', '/owner/audit?reason=organisation_changed&limit=1')).body;
      return rows[0].flags.change;
    };
    const other = { issuer: 'https://id.other.example', audience: 'agents' };
    await expectStatus(200, organisation.ask('POST', '/owner/caller-issuers', other));
    const moved = { ...other, jwks_uri: 'https://keys.elsewhere.example/jwks' };
    await expectStatus(200, organisation.ask('POST', '/owner/caller-issuers', moved));
    expect(await noted()).toMatchObject({
      caller_issuers: [issuer.issuer, other.issuer],
      changes: [`trust ${JSON.stringify(moved)}`],
    });
    await expectStatus(200, organisation.ask('POST', '/owner/organisation', { caller_issuers: [other] }));
    expect((await noted()).changes).toEqual([`trust ${JSON.stringify(other)}`, `distrust ${issuer.issuer}`]);
    await expectStatus(200, organisation.ask('POST', '/owner/caller-issuers/remove', { issuer: other.issuer }));
    expect(await noted()).toMatchObject({ caller_issuers: [], changes: [`distrust ${other.issuer}`] });
  });

  test('concurrent changes of trusted issuers by two admins are both kept', async () => {
    const one = (name: string) => ({ issuer: `https://${name}.example`, audience: 'agents' });
    const names = ['a', 'b', 'c', 'd'];
    await Promise.all(names.map((name) => organisation.ask('POST', '/owner/caller-issuers', one(name))));
    const { caller_issuers } = (await organisation.ask('GET', '/owner/caller-issuers')).body;
    expect(caller_issuers).toHaveLength(5);
  });
});
