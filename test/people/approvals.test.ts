/** Held calls for people: the deciding owner sees on whose behalf, never the person's identity; and the call is made with that person's token. */
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { card, DESKTOP, look, openConsole } from '../world/browser/console.ts';
import { linkOf, text } from '../world/browser/held-page.ts';
import { govern, READ_DOCS } from '../world/docs-platform.ts';
import { consentVerified } from '../world/mcp/people.ts';
import { agentOfPeople, documentOf, outlivePerson } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, shared, WRITE } from '../world/world.ts';

const ANN = slack('CANARY-ann-9876543210');
const HOLD = [{ effect: 'require_approval' }];

describe.each(ONE_STORE)(`held calls for people on %s${postgresNote}`, (store) => {
  const people = givenPeople(store);
  const { server, issuer, world, organisation, act, assertion, connected } = people;
  const careful = fresh<TestAgent>(() => agentOfPeople(organisation, HOLD));
  const ask = (path: string) => organisation.ask('GET', path);

  beforeEach(async () => {
    await connected(ANN, 'ann');
    await consentVerified(people, (await act(await assertion('bob'))).body.consent_url, 'bob');
  });
  const held = async (caller: object): Promise<string> => {
    const answer = await expectStatus(202, act(caller, {}, careful));
    return answer.body.approval_id;
  };

  test('owners read how the person is identified and a random id: in the list, in the approval, and by its link', async () => {
    const ids = { asserted: await held(ANN), verified: await held(await assertion('bob')) };
    const { approvals } = (await ask('/owner/approvals?status=pending')).body;
    const { tokens } = (await ask('/owner/people')).body;
    for (const [identity, named_by] of [
      ['asserted', 'slack'],
      ['verified', issuer.issuer],
    ] as const) {
      const { person_id } = tokens.find((one: { verified: boolean }) => one.verified === (identity === 'verified'));
      const caller = { identity, named_by, person_id };
      const id = ids[identity];
      expect(approvals.find((one: { approval_id: string }) => one.approval_id === id).caller).toEqual(caller);
      const one = await ask(`/owner/approvals/${id}`);
      expect([one.body.caller, one.body.request.caller]).toEqual([caller, caller]);
      const linked = await careful.request('GET', `/approve/${id}/request`);
      expect(linked.body.request.caller).toEqual(caller);
      expect(JSON.stringify([approvals, one.body, linked.body])).not.toContain(ANN.id);
    }
    // Without a caller, on a platform with one token for all.
    await organisation.platform();
    const plain = await organisation.agent();
    const other = await plain.act({ ...WRITE, data: {} });
    const { caller, request } = (await ask(`/owner/approvals/${other.body.approval_id}`)).body;
    expect([caller, request.caller]).toEqual([null, null]);
  });

  const replayed = async (id: string) => {
    await organisation.approve(id);
    return (await careful.get(`/v1/approvals/${id}?wait=10`)).body;
  };

  test('the call is made with the token of that person', async () => {
    expect((await replayed(await held(ANN))).result.data.who).toBe('ann');
    expect((await replayed(await held(await assertion('bob')))).result.data.who).toBe('bob');
  });

  test.each<[string, () => Promise<unknown>, string]>([
    [
      'whose token was ended',
      () => organisation.ask('POST', '/owner/people/end', { caller: ANN }),
      'consent_required: The person for whom it was held no longer has a usable token, so nothing was sent.',
    ],
    [
      'whose source is not taken any more',
      () => govern(organisation, documentOf(server, { asserted: ['teams'] })),
      'consent_required: The platform no longer trusts this source to say who the person is, so nothing was sent.',
    ],
    [
      'who ended it at the platform',
      async () => {
        await outlivePerson(world, organisation, 'ann@docs.example');
        server.instead = (path) => (path === '/token' ? { status: 400, body: '{"error":"invalid_grant"}' } : undefined);
      },
      'platform_reauth_needed: The token of the person for whom it was held has expired, or was refused; they have to consent again.',
    ],
  ])('for a person %s nothing is sent, and the error says why', async (_who, end, words) => {
    const id = await held(ANN);
    await end();
    server.bearers.length = 0;
    const { result, execution_error } = await replayed(id);
    expect([result, execution_error]).toEqual([undefined, words]);
    expect(server.bearers).toEqual([]);
  });

  test('the result of a call is not given once its person has disconnected, and is again when they are back', async () => {
    const [id, other] = [await held(ANN), await held(await assertion('bob'))];
    for (const one of [id, other]) await organisation.approve(one);
    const resultOf = async (one: string) => (await careful.get(`/v1/approvals/${one}?wait=10`)).body;
    expect((await resultOf(id)).result.data.who).toBe('ann');
    await expectStatus(200, organisation.ask('POST', '/owner/people/end', { caller: ANN }));
    const { result, execution_error } = await resultOf(id);
    expect([result, execution_error]).toEqual([
      undefined,
      'result_withheld: The call was made. Its response is not returned, because the agent could not make the call now: the person whom the call is for has disconnected. Do not repeat it.',
    ]);
    expect((await resultOf(other)).result.data.who).toBe('bob');
    await connected(ANN, 'ann');
    expect((await resultOf(id)).result.data.who).toBe('ann');
  });

  test('the answer stored for an Idempotency-Key is not given once its person has disconnected', async () => {
    const key = { 'idempotency-key': 'of-ann' };
    const write = () =>
      people.agent.act({ ...READ_DOCS, method: 'POST', scope: 'docs:write', data: {}, caller: ANN }, key);
    const first = await expectStatus(200, write());
    expect((await write()).text).toBe(first.text);
    await expectStatus(200, organisation.ask('POST', '/owner/people/end', { caller: ANN }));
    const refused = await write();
    expect([refused.status, refused.body.reason], refused.text).toEqual([403, 'no_permission_record']);
    expect(refused.body.detail).toContain(
      'the person whom the call is for has disconnected; the call was already made',
    );
  });

  test('who decides reads that the token of the person was ended, refused, or replaced by another one since', async () => {
    const id = await held(ANN);
    const noteOf = async (one: string) => {
      const { connection_note: note } = (await expectStatus(200, ask(`/owner/approvals/${one}`))).body;
      expect((await careful.request('GET', `/approve/${one}/request`)).body.connection_note).toBe(note);
      return note;
    };
    expect(await noteOf(id)).toBeNull();
    await expectStatus(200, organisation.ask('POST', '/owner/people/end', { caller: ANN }));
    expect(await noteOf(id)).toContain('has no usable token any more: an approved call is not made');
    world.clock.skewMs = 120_000;
    const at = new Date(world.running.broker.clock()).toISOString().slice(0, 13).replace('T', ' ');
    await connected(ANN, 'ann-elsewhere');
    expect(await noteOf(id)).toContain(`gave another token on ${at}`);
    const later = await held(ANN);
    expect(await noteOf(later)).toBeNull();
    await world.db.updateTable('person_tokens').set({ status: 'reauth_needed' }).execute();
    expect(await noteOf(later)).toContain('The platform refuses the token of the person');
  });

  describeInChromium('in a browser', () => {
    const browser = shared(() => startBrowser());

    test('the inbox, its card and the page of the link show on whose behalf the call is', {
      timeout: 180_000,
    }, async () => {
      const host = new URL(issuer.issuer).host;
      const expected = [
        [await held(ANN), 'for a person, slack id as the agent says'],
        [await held(await assertion('bob')), `for a person, verified by ${host}`],
      ] as const;
      const inbox = await openConsole(world, browser, organisation.owner);
      const alone = await browser.page(DESKTOP);
      for (const [id, words] of expected) {
        await inbox.until(`document.querySelector('${card(id)}') !== null`);
        expect(await text(inbox, `${card(id)} .about`)).toContain(words);
        await look(inbox, id);
        expect(await text(inbox, `${card(id)} .on-behalf`)).toBe(words);
        await alone.open(linkOf(world, id));
        await alone.until(`document.querySelector('.on-behalf') !== null`);
        expect(await text(alone, '.on-behalf')).toBe(words);
        for (const page of [inbox, alone]) expect(await text(page, 'body')).not.toContain(ANN.id);
      }
    });
  });
});
