/** Forged callers, links in the wrong hands, and ended tokens: no token is ever used for another person. */
import { importPKCS8, SignJWT } from 'jose';
import { beforeEach, describe, expect, test } from 'vitest';
import { revokeUndecidedTokens } from '../../broker/admin/connections/revoke-undecided-tokens.ts';
import { expectStatus, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { leaksOf } from '../world/canary.ts';
import { govern, READ_DOCS } from '../world/docs-platform.ts';
import {
  agentOfPeople,
  authorise,
  consentAsserted,
  documentOf,
  onward,
  outlivePerson,
  start,
} from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { newRsaPair } from '../world/rsa.ts';
import { thorough } from '../world/runner/thorough.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('CANARY-ann-0123456789');
const BOB = slack('CANARY-bob-0123456789');

describe.each(ONE_STORE)(`attacks on tokens of people on %s${postgresNote}`, (store) => {
  const { server, issuer, world, organisation, agent, document, act, connected } = givenPeople(store);
  const nothingSent = () => expect(server.bearers).toEqual([]);

  test('CA-01 the id is everything after the first colon, byte for byte', async () => {
    await connected(slack('U1:extra'), 'ann');
    const from = (value: string) => agent.act(READ_DOCS, { 'x-svc-caller': value });
    expect((await from('id slack:U1:extra')).body.data.who).toBe('ann');
    for (const other of ['id slack:U1', 'id slack:U1:Extra', 'id slack:U1:extra:'])
      expect((await from(other)).status).toBe(412);
    for (const none of ['id Slack:U1', `id slack:${'x'.repeat(257)}`, 'id slack:', 'U1'])
      expect((await from(none)).status).toBe(400);
    expect((await act(slack('U1:extra'), {}, agent)).status).toBe(200);
    await expectStatus(400, agent.act({ ...READ_DOCS, caller: slack('U2') }, { 'x-svc-caller': 'id slack:U1:extra' }));
  });

  test.each<[string, (now: number) => Promise<string>]>([
    ['CA-03 of an issuer that is not trusted', () => issuer.assertion('ann', { iss: 'https://id.example' })],
    ['for another audience', () => issuer.assertion('ann', { aud: 'others' })],
    ['that is over', (now) => issuer.assertion('ann', { iat: now - 600, exp: now - 300 })],
    ['from the future', (now) => issuer.assertion('ann', { iat: now + 600, exp: now + 900 })],
    ['that lives longer than an hour', (now) => issuer.assertion('ann', { exp: now + 3700 })],
    ['without sub', () => issuer.assertion('', {})],
    ['that names its keys', () => issuer.assertion('ann', {}, { jku: 'https://id.example/keys' })],
    [
      'signed with another key',
      async (now) => {
        const { privateKey } = newRsaPair();
        const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
        return await new SignJWT({ iss: issuer.issuer, aud: 'agents', sub: 'ann', iat: now, exp: now + 60 })
          .setProtectedHeader({ alg: 'RS256' })
          .sign(await importPKCS8(pem, 'RS256'));
      },
    ],
    [
      'HS256',
      (now) =>
        new SignJWT({ iss: issuer.issuer, aud: 'agents', sub: 'ann', iat: now, exp: now + 60 })
          .setProtectedHeader({ alg: 'HS256' })
          .sign(new TextEncoder().encode('a public key, as a secret, 0123456789')),
    ],
    [
      'alg none',
      async (now) => {
        const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
        return `${part({ alg: 'none' })}.${part({ iss: issuer.issuer, aud: 'agents', sub: 'ann', iat: now, exp: now + 60 })}.`;
      },
    ],
  ])(
    'CA-04 an assertion %s is refused with 400 when starting a consent, and with 412 at a call',
    async (_what, make) => {
      const caller = { assertion: await make(Math.floor(Date.now() / 1000)) };
      const answer = await act(caller);
      expect([answer.status, answer.body.reason], answer.text).toEqual([412, 'no_caller']);
      expect(answer.body.consent_url).toBeUndefined();
      await expectStatus(400, agent.post('/v1/consent/caller/start', { platform: 'docs', caller }));
      nothingSent();
    },
  );

  test('a person’s token in a platform’s answer is redacted, and appears nowhere else', async () => {
    await connected(ANN, 'ann');
    const answer = await expectStatus(200, act(ANN));
    const bearer = server.bearers.at(-1)!;
    expect(bearer.length).toBeGreaterThan(16);
    expect(answer.body.data.echo).toEqual(expect.any(String));
    expect(leaksOf(bearer, answer.text)).toEqual([]);
    expect(placesOf(bearer, await everythingStored(world.environment))).toEqual([]);
  });

  test('an issuer may rotate its keys, and a valid assertion may be sent repeatedly', async () => {
    const before = { assertion: await issuer.assertion('ann') };
    for (let times = 0; times < 2; times++) expect((await act(before)).body.reason).toBe('not_consented');
    await issuer.rotate();
    world.clock.skewMs = 31_000;
    expect((await act({ assertion: await issuer.assertion('ann') })).body.reason).toBe('not_consented');
    world.clock.skewMs = 6 * 60_000 - 30_000;
    expect((await act(before)).body.reason).toBe('no_caller');
  });

  test('CA-06 the same person in two organisations counts as two people', async () => {
    await connected(ANN, 'ann');
    const other = await world.organisation();
    expect((await govern(other, document())).status).toBe(200);
    const theirs = await agentOfPeople(other);
    expect((await act(ANN, {}, theirs)).status).toBe(412);
    const rows = await world.db
      .selectFrom('persons')
      .selectAll()
      .where('organisation_id', 'in', [organisation.id, other.id])
      .execute();
    expect(rows).toHaveLength(2);
    expect(new Set(rows.flatMap(({ id, hash }) => [id, hash])).size).toBe(4);
  });

  test('CA-08 the organisation’s token is never used for a person, nor one person’s token for another', async () => {
    await connected(ANN, 'ann');
    const place = { organisationId: organisation.id, rowId: '', table: 'connections' as const };
    const { vault, store: stored } = world.running.broker;
    const connection = await stored.db
      .selectFrom('connections')
      .selectAll()
      .where('organisation_id', '=', organisation.id)
      .executeTakeFirstOrThrow();
    // As if an owner had connected the platform before.
    const credential = vault.seal({ ...place, rowId: connection.id }, 'the-token-of-the-organisation');
    await stored.db.updateTable('connections').set({ credential }).where('id', '=', connection.id).execute();
    for (const nobody of [undefined, BOB, { source: 'teams', id: 'x' }]) expect((await act(nobody)).status).toBe(412);
    nothingSent();
    expect((await act(ANN)).body.data.who).toBe('ann');
  });

  test('CA-09 a link in another browser: the account is shown and kept only in the browser that authorised it', async () => {
    const { body } = await act(ANN);
    const [one, other] = [new Browser(), new Browser()];
    const asked = await authorise(server, one, 'ann', await start(one, body.consent_url));
    expect(asked.text).toContain('ann@docs.example');
    expect((await other.get(body.consent_url)).text).not.toContain('ann@docs.example');
    expect((await other.post(`${body.consent_url}/keep`, {})).status).toBe(409);
    // The callback of one browser in another one, and repeated.
    one.stopAt = (url) => url.pathname.startsWith('/console/connected/');
    const stopped = await authorise(server, one, 'ann', await start(one, body.consent_url));
    expect((await other.get(stopped.url)).status).not.toBe(200);
    one.stopAt = undefined;
    expect((await one.get(stopped.url)).text).toContain('Use the account');
    expect((await one.get(stopped.url)).text).not.toContain('Use the account');
    expect((await one.post(`${body.consent_url}/discard`, {})).text).toContain('Nothing was kept');
    expect((await one.post(`${body.consent_url}/keep`, {})).status).toBe(409);
    expect((await act(ANN)).status).toBe(412);
  });

  const works = async (token: string) =>
    (await fetch(`${server.issuer}/api/items`, { headers: { authorization: `Bearer ${token}` } })).status === 200;

  describe.each([
    ['a verified person', async () => ({ assertion: await issuer.assertion('ann') }), test],
    // They do not sign in before the platform. The code exchange, where it matters, is in CI.
    ['a person whom a source asserts', async () => slack('U-ANN'), test.runIf(thorough)],
  ])('the link of %s, opened by another browser', (_who, caller, testOfBoth) => {
    beforeEach(async () => {
      // A kept token is usable immediately, so that no owner's confirmation stands between a link and a call.
      const more = documentOf(server, { asserted: ['slack'], asserted_consent: 'link' });
      await expectStatus(200, govern(organisation, document({ platforms: (more as { platforms: object }).platforms })));
    });
    /** Continues to the platform's consent page. */
    const toPlatform = async (browser: Browser, consentUrl: string) => {
      const url = await start(browser, consentUrl);
      return 'assertion' in (await caller()) ? onward(await issuer.signIn(browser, 'ann', url)) : url;
    };
    /** Checks that this browser cannot keep, see or give anything. */
    const nothingIn = async (browser: Browser, consentUrl: string) => {
      expect((await browser.get(consentUrl)).text).not.toContain('ann@docs.example');
      const kept = await browser.post(`${consentUrl}/keep`, {});
      expect([kept.status, kept.text.includes('This consent')]).toEqual([409, true]);
      expect(browser.cookies.filter(({ name }) => name.startsWith('svc_person'))).toEqual([]);
      expect((await browser.get(`${world.running.baseUrl}/me/connections`)).text).not.toContain('ann@docs.example');
    };

    testOfBoth.each([
      ['says no', 'discard'],
      ['says yes', 'keep'],
    ])(
      'which begins again before the person %s: the obtained token is kept by nobody, and revoked',
      async (_what, choice) => {
        const { consent_url } = (await act(await caller())).body;
        const [ann, thief] = [new Browser(), new Browser()];
        const asked = await authorise(server, ann, 'ann', await toPlatform(ann, consent_url));
        expect(asked.text).toContain('Use the account ann@docs.example');
        const token = server.given.access.at(-1)!;
        expect(await works(token)).toBe(true);
        await start(thief, consent_url);
        expect(await works(token)).toBe(false);
        const chosen = await ann.post(`${consent_url}/${choice}`, {});
        expect([chosen.status, chosen.text]).toEqual([409, expect.stringContaining('started in another browser')]);
        await nothingIn(thief, consent_url);
        await nothingIn(ann, consent_url);
        expect((await act(await caller())).status).toBe(412);
        // When the person begins again, only they can keep the account.
        const again = await authorise(server, ann, 'ann', await toPlatform(ann, consent_url));
        expect(again.text).toContain('Use the account ann@docs.example');
        await nothingIn(thief, consent_url);
        expect((await ann.post(`${consent_url}/keep`, {})).status).toBe(200);
        expect((await act(await caller())).body.data.who).toBe('ann');
      },
    );

    test('which begins again during the code exchange: the token is kept by nobody, and revoked', async () => {
      const { consent_url } = (await act(await caller())).body;
      const [ann, thief] = [new Browser(), new Browser()];
      const url = await toPlatform(ann, consent_url);
      server.issued = async () => {
        server.issued = undefined;
        await start(thief, consent_url);
      };
      const back = await authorise(server, ann, 'ann', url);
      expect([back.status, back.text]).toEqual([409, expect.stringContaining('started in another browser')]);
      expect(await works(server.given.access.at(-1)!)).toBe(false);
      await nothingIn(thief, consent_url);
      await nothingIn(ann, consent_url);
      expect((await act(await caller())).status).toBe(412);
    });

    testOfBoth.each([
      ['another account', 'bob'],
      ['the same account', 'ann'],
    ])(
      'when the same browser begins again after %s, the first token stays until there is a new one',
      async (_what, login) => {
        const { consent_url } = (await act(await caller())).body;
        const ann = new Browser();
        await authorise(server, ann, login, await toPlatform(ann, consent_url));
        const first = server.given.access.at(-1)!;
        if (login !== 'ann') ann.cookies = ann.cookies.filter(({ name }) => name.startsWith('svc_consent_'));
        const url = await toPlatform(ann, consent_url);
        expect((await ann.get(consent_url)).text).toContain(`Use the account ${login}@docs.example`);
        expect(await works(first)).toBe(true);
        expect((await authorise(server, ann, 'ann', url)).text).toContain('Use the account ann@docs.example');
        // At some servers, revoking one token of an account ends all of them.
        expect(await works(first)).toBe(login === 'ann');
        expect((await ann.post(`${consent_url}/keep`, {})).status).toBe(200);
        expect((await act(await caller())).body.data.who).toBe('ann');
      },
    );
  });

  test('a sign-in that finishes after another browser began does not continue to the platform', async () => {
    const { consent_url } = (await act({ assertion: await issuer.assertion('ann') })).body;
    const [ann, other] = [new Browser(), new Browser()];
    ann.stopAt = ({ pathname }) => pathname === '/me/consent/signed-in';
    const { url } = await issuer.signIn(ann, 'ann', await start(ann, consent_url));
    ann.stopAt = undefined;
    await start(other, consent_url);
    expect((await ann.get(url)).status).toBe(400);
  });

  test('an account that is neither kept nor discarded is deleted after an hour, and revoked at the platform', async () => {
    await connected(BOB, 'bob');
    const kept = server.given.access.at(-1)!;
    const { consent_url } = (await act(ANN)).body;
    const browser = new Browser();
    await authorise(server, browser, 'ann', await start(browser, consent_url));
    const token = server.given.access.at(-1)!;
    const { services, broker } = world.running;
    await revokeUndecidedTokens(services, broker.clock() + 59 * 60_000);
    expect([await works(token), await works(kept)]).toEqual([true, true]);
    await revokeUndecidedTokens(services, broker.clock() + 61 * 60_000);
    expect([await works(token), await works(kept)]).toEqual([false, true]);
    expect((await browser.post(`${consent_url}/keep`, {})).status).toBe(409);
    expect((await act(BOB)).body.data.who).toBe('bob');
  });

  test('a form of another site cannot keep an account, and a link is valid once and for 30 minutes', async () => {
    const { body } = await act(ANN);
    const browser = new Browser();
    await authorise(server, browser, 'ann', await start(browser, body.consent_url));
    const keep = `${body.consent_url}/keep`;
    const foreign = await send(keep, {
      method: 'POST',
      headers: { cookie: browser.cookieFor(keep), origin: 'https://evil.example', accept: 'text/html' },
    });
    expect(foreign.status).toBe(403);
    expect((await browser.post(keep, {})).status).toBe(200);
    expect((await new Browser().post(keep, {})).status).toBe(409);
    expect((await browser.post(`${body.consent_url}/start`, {})).status).toBe(409);
    const late = (await act(BOB)).body.consent_url;
    world.clock.skewMs = 31 * 60_000;
    expect((await new Browser().get(late)).status).toBe(409);
  });

  test('an owner can confirm an account only for the person it was given for, and end it by the name that agents use', async () => {
    const { body } = await act(ANN);
    // Somebody with Ann's link gives their own account for Ann's id.
    await consentAsserted(server, body.consent_url, 'bob');
    const [given] = (await organisation.ask('GET', '/owner/people')).body.tokens;
    const confirm = (caller: object) =>
      organisation.ask('POST', `/owner/people/tokens/${given.id}/confirm`, { caller });
    expect(given.account).toBe('bob@docs.example');
    expect((await confirm(BOB)).status).toBe(409);
    expect((await act(ANN)).status).toBe(412);
    expect((await confirm(ANN)).status).toBe(200);
    expect((await act(ANN)).body.data.who).toBe('bob');
    const token = server.bearers.at(-1);
    expect((await organisation.ask('POST', '/owner/people/end', { caller: ANN })).body).toEqual({
      ended: 1,
      revoked: 1,
    });
    expect((await act(ANN)).status).toBe(412);
    expect(server.bearers.at(-1)).toBe(token);
    expect((await organisation.ask('POST', '/owner/people/end', { caller: BOB })).body).toEqual({
      ended: 0,
      revoked: 0,
    });
  });

  test('CA-10 concurrent calls of two people with expired tokens refresh once each, and each gets their own data', async () => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    for (const account of ['ann@docs.example', 'bob@docs.example']) await outlivePerson(world, organisation, account);
    server.asked.length = 0;
    const answers = await Promise.all(Array.from({ length: 12 }, (_, turn) => act(turn % 2 === 0 ? ANN : BOB)));
    expect(answers.map(({ body }) => body.data?.who)).toEqual(
      Array.from({ length: 12 }, (_, turn) => (turn % 2 === 0 ? 'ann' : 'bob')),
    );
    expect(server.asked.filter((form) => form.get('grant_type') === 'refresh_token')).toHaveLength(2);
  });

  test('CA-11 a consent that was revoked at the platform is answered with 409, and affects nobody else', async () => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    await outlivePerson(world, organisation, 'ann@docs.example');
    server.instead = (path) => (path === '/token' ? { status: 400, body: '{"error":"invalid_grant"}' } : undefined);
    for (let times = 0; times < 2; times++) {
      const answer = await act(ANN);
      expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
      expect([answer.body.connect_url, answer.body.message]).toEqual([
        undefined,
        expect.stringContaining('consent again'),
      ]);
    }
    server.instead = undefined;
    expect((await act(BOB)).body.data.who).toBe('bob');
  });

  test('a held call is made for its person, or not at all', async () => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    const careful = await agentOfPeople(organisation, [{ effect: 'require_approval' }]);
    const held = [await act(ANN, {}, careful), await act(BOB, {}, careful)];
    expect(held.map(({ status }) => status)).toEqual([202, 202]);
    expect((await organisation.ask('POST', '/owner/people/end', { caller: BOB })).body.ended).toBe(1);
    const results = [];
    for (const { body } of held) {
      await organisation.approve(body.approval_id);
      results.push((await careful.get(`/v1/approvals/${body.approval_id}?wait=10`)).body);
    }
    expect(results[0].result.data.who).toBe('ann');
    expect([results[1].status, results[1].result]).toEqual(['approved', undefined]);
    expect(results[1].execution_error).toContain('consent_required');
  });

  test('a source that is no longer accepted is refused, for earlier held calls, too', async () => {
    await connected(ANN, 'ann');
    const careful = await agentOfPeople(organisation, [{ effect: 'require_approval' }]);
    const held = await act(ANN, {}, careful);
    expect((await govern(organisation, documentOf(server, { asserted: ['teams'] }))).status).toBe(200);
    server.bearers.length = 0;
    expect((await act(ANN)).body.reason).toBe('asserted_not_allowed');
    await organisation.approve(held.body.approval_id);
    const { body } = await careful.get(`/v1/approvals/${held.body.approval_id}?wait=10`);
    expect([body.result, body.execution_error]).toEqual([undefined, expect.stringContaining('consent_required')]);
    nothingSent();
  });

  test('an issuer that is no longer trusted is refused, for earlier held calls, too', async () => {
    const caller = { assertion: await issuer.assertion('ann') };
    const browser = new Browser();
    const consent: string = (await act(caller)).body.consent_url;
    const signedIn = await issuer.signIn(browser, 'ann', await start(browser, consent));
    await authorise(server, browser, 'ann', onward(signedIn));
    expect((await browser.post(`${consent}/keep`, {})).status).toBe(200);
    const waits = await agentOfPeople(organisation, [{ effect: 'require_approval' }]);
    const hold = async () => (await act(caller, { reason: 'as asked' }, waits)).body.approval_id as string;
    const approve = async (id: string) => {
      expect((await organisation.approve(id)).status).toBe(200);
      return (await waits.get(`/v1/approvals/${id}?wait=30`)).body;
    };
    const [before, after] = [await hold(), await hold()];
    expect((await approve(before)).result).toMatchObject({ status: 200, data: { who: 'ann' } });
    server.bearers.length = 0;
    await expectStatus(200, organisation.ask('POST', '/owner/caller-issuers/remove', { issuer: issuer.issuer }));
    expect((await act(caller)).body.reason).toBe('no_caller');
    expect((await approve(after)).execution_error).toBe(
      'consent_required: The organisation no longer trusts the issuer that identified the person (caller_issuers), so nothing was sent.',
    );
    nothingSent();
  });

  test('an Idempotency-Key of a call for one person is refused in a call for another', async () => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    const write = { method: 'POST', scope: 'docs:write', data: {} };
    const key = { 'idempotency-key': 'k1' };
    const once = (caller: object) => agent.act({ ...READ_DOCS, ...write, caller }, key);
    expect((await once(ANN)).body.data.who).toBe('ann');
    expect((await once(ANN)).headers.get('idempotency-replayed')).toBe('true');
    const other = await once(BOB);
    expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_reused']);
    // Another assertion about the same person is the same request.
    const caller = async () => ({ assertion: await issuer.assertion('ann') });
    const browser = new Browser();
    const consent: string = (await act(await caller())).body.consent_url;
    const signedIn = await issuer.signIn(browser, 'ann', await start(browser, consent));
    await authorise(server, browser, 'ann', onward(signedIn));
    expect((await browser.post(`${consent}/keep`, {})).status).toBe(200);
    const verified = async (iat: number) =>
      agent.act(
        { ...READ_DOCS, ...write, caller: { assertion: await issuer.assertion('ann', { iat }) } },
        { 'idempotency-key': 'k2' },
      );
    const now = Math.floor(Date.now() / 1000);
    const [first, again] = [await verified(now - 2), await verified(now - 1)];
    expect([first.status, again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 200, 'true']);
  });

  test('rules can read whether the person is verified, and nothing when no caller is identified', async () => {
    await connected(ANN, 'ann');
    const strict = await agentOfPeople(organisation, [
      { effect: 'allow' },
      { effect: 'deny', when: '!has(caller.verified) || !caller.verified' },
    ]);
    expect((await act(ANN, {}, strict)).body.reason).toBe('denied_by_policy');
    expect((await act(undefined, {}, strict)).body.reason).toBe('denied_by_policy');
    expect((await act({ assertion: await issuer.assertion('ann') }, {}, strict)).body.reason).toBe('not_consented');
  });

  test('the identity of a person is nowhere in the stored data', async () => {
    await connected(ANN, 'ann');
    await act({ assertion: await issuer.assertion('CANARY-sub-0123456789') });
    const stored = await everythingStored(world.environment);
    for (const canary of [ANN.id, 'CANARY-sub-0123456789', server.given.access.at(-1)!, server.given.refresh.at(-1)!])
      expect(placesOf(canary, stored)).toEqual([]);
  });

  test.each([
    ['by an owner', async (id: string) => await organisation.ask('DELETE', `/owner/connections/${id}`)],
    ['by the governance file', async () => await govern(organisation, document({ connections: {} }))],
  ])('removing a connection %s deletes and revokes the tokens of all people', async (_how, remove) => {
    await connected(ANN, 'ann');
    await connected(BOB, 'bob');
    const tokens = server.given.access.slice(-2);
    expect(await Promise.all(tokens.map(works))).toEqual([true, true]);
    const [{ connection_id: id }] = (await organisation.ask('GET', '/owner/people')).body.tokens;
    await expectStatus(200, remove(id));
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toEqual([]);
    expect(await Promise.all(tokens.map(works))).toEqual([false, false]);
  });

  test('a connection can be removed while the authorization server is down', async () => {
    await connected(ANN, 'ann');
    const [{ connection_id: id }] = (await organisation.ask('GET', '/owner/people')).body.tokens;
    await server.down();
    try {
      expect((await organisation.ask('DELETE', `/owner/connections/${id}`)).status).toBe(200);
    } finally {
      await server.up();
    }
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toEqual([]);
  });
});
