import { createHmac } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { authenticateSession, mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { signCompact } from '../../broker/crypto/jws.ts';
import { readConfig } from '../../broker/environment/config.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { serve } from '../../broker/process/main.ts';
import { runFile } from '../../broker/process/run-file.ts';
import { purgeEndedSessions } from '../../broker/store/ended-sessions.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, jsonPost, send } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

describe.each(STORES)(`sign-in of owners, and keys, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  // Another organisation exists, so that owners have to be distinguished.
  beforeAll(async () => void (await world.demoOrganisation()));

  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    send(world.running.baseUrl + path, jsonPost(body, headers));
  const localToken = () => world.running.services.local.token.reveal();
  const local = (path: string, body: unknown) => post(path, body, { authorization: `Bearer ${localToken()}` });
  const tokenOf = (link: Answer): string => new URL(link.body.url).hash.slice(1);
  const cookieOf = (answer: Answer): string => answer.headers.get('set-cookie')!.split(';')[0]!;

  test('the command line’s credential is in a file of its own with mode 0600, and no other token is accepted by local routes', async () => {
    const path = runFile(world.running.broker.config.dataFolder);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      url: world.running.baseUrl.replace('localhost', '127.0.0.1'),
      local_token: localToken(),
    });
    for (const path of ['/owner/token', '/owner/link', '/owner/keys/rotate']) {
      for (const token of [
        mintOwnerSession(world.running.broker, organisation.owner).token,
        `cli_${'A'.repeat(43)}`,
        'x',
      ])
        expectEnvelope(await post(path, {}, { authorization: `Bearer ${token}` }), 401, 'invalid_token');
      expectEnvelope(await post(path, {}), 401, 'missing_token');
    }
  });

  test('the broker proves that it has the credential, without revealing it', async () => {
    const challenge = 'c'.repeat(32);
    const proof = async (of: string) => (await post('/owner/local-proof', { challenge: of })).body.proof;
    const hmac = createHmac('sha256', localToken()).update(`agent-broker local proof\n${challenge}`);
    expect(await proof(challenge)).toBe(hmac.digest('base64url'));
    expect(await proof(`${challenge}d`)).not.toBe(await proof(challenge));
    for (const wrong of ['', 'c'.repeat(21), 'c'.repeat(129), `${'c'.repeat(32)}\n`, 7])
      expectEnvelope(await post('/owner/local-proof', { challenge: wrong }), 400, 'invalid_request');
  });

  test('a script can get a session', async () => {
    const made = await local('/owner/token', { email: organisation.owner.email });
    expect(made.body).toMatchObject({ email: organisation.owner.email, role: 'admin' });
    expect(Date.parse(made.body.expires_at) - Date.now()).toBeGreaterThan(11.9 * 60 * MINUTE_MS);
    const answer = await send(`${world.running.baseUrl}/owner/agents`, {
      headers: { authorization: `Bearer ${made.body.token}` },
    });
    expect(answer.status).toBe(200);
    expectEnvelope(await local('/owner/token', { email: 'nobody@acme.example' }), 404, 'not_found');
    expectEnvelope(await local('/owner/token', { email: 'no address' }), 400, 'invalid_request');
    // With several organisations the owner has to be named.
    expectEnvelope(await local('/owner/token', {}), 400, 'invalid_request');
  });

  test('a link signs in once, and its token is only in the fragment', async () => {
    const link = await local('/owner/link', { email: organisation.owner.email });
    const token = tokenOf(link);
    expect(token).toMatch(/^sgn_[\w-]{43}$/);
    const stored = await world.db.selectFrom('one_time_tokens').selectAll().execute();
    expect(JSON.stringify(stored)).not.toContain(token);
    const answers = await Promise.all(Array.from({ length: 5 }, () => post('/owner/sign-in', { token })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 410, 410, 410, 410]);
    for (const answer of answers) if (answer.status === 410) expectEnvelope(answer, 410, 'link_used');
    const won = answers.find(({ status }) => status === 200)!;
    expect(won.body).toMatchObject({ email: organisation.owner.email, role: 'admin' });
    expect(won.headers.get('set-cookie')).toMatch(
      /^svc_owner_\d+=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/,
    );
  });

  test('AP-16 a link of another owner replaces no session before the person in the browser agrees', async () => {
    const [victim, other] = [
      organisation.owner,
      (await world.organisation({ name: `other-${crypto.randomUUID()}` })).owner,
    ];
    const cookie = `${sessionCookieName(world.running.baseUrl)}=${mintOwnerSession(world.running.broker, victim).token}`;
    const token = tokenOf(await local('/owner/link', { email: other.email }));
    const me = (sent: string) => send(`${world.running.baseUrl}/owner/me`, { headers: { cookie: sent } });
    const refused = await post('/owner/sign-in', { token }, { cookie });
    expectEnvelope(refused, 409, 'conflict');
    for (const named of [victim.email, other.email, 'the organisation other-'])
      expect(refused.body.detail).toContain(named);
    expect(refused.headers.get('set-cookie')).toBeNull();
    expect((await me(cookie)).body.id).toBe(victim.id);
    const agreed = await post('/owner/sign-in', { token, instead: true }, { cookie });
    expect([agreed.status, agreed.body.email], agreed.text).toEqual([200, other.email]);
    expectEnvelope(await me(cookie), 401, 'token_expired');
    // Another link of the same owner, and a browser whose session ended, need no consent.
    for (const sent of [cookieOf(agreed), cookie]) {
      const link = await local('/owner/link', { email: other.email });
      expect((await post('/owner/sign-in', { token: tokenOf(link) }, { cookie: sent })).status).toBe(200);
    }
  });

  test('a link whose sign-in could not be recorded can be used afterwards', async () => {
    const token = tokenOf(await local('/owner/link', { email: organisation.owner.email }));
    const end = await refuseAuditRows(world);
    const refused = await post('/owner/sign-in', { token });
    await end();
    expectEnvelope(refused, 503, 'audit_unavailable');
    expect([refused.headers.get('set-cookie'), refused.headers.get('retry-after')]).toEqual([null, '5']);
    expect((await post('/owner/sign-in', { token })).status).toBe(200);
    expectEnvelope(await post('/owner/sign-in', { token }), 410, 'link_used');
  });

  test('last_sign_in_at is set by a link, and neither by a request nor by the operator’s session', async () => {
    const colleague = await organisation.addOwner('viewer');
    const lastSignIn = async () =>
      (await organisation.ask('GET', '/owner/owners')).body.owners.find(({ id }: OwnerTable) => id === colleague.id)
        .last_sign_in_at;
    expect(await lastSignIn()).toBeNull();
    const { body } = await local('/owner/token', { email: colleague.email });
    expect((await as(body.token, '/owner/me')).status).toBe(200);
    const link = await local('/owner/link', { email: colleague.email });
    expect(await lastSignIn()).toBeNull();
    const before = Date.now();
    const cookie = cookieOf(await post('/owner/sign-in', { token: tokenOf(link) }));
    const signedIn = await lastSignIn();
    expect(Date.parse(signedIn)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(signedIn)).toBeLessThanOrEqual(Date.now());
    expect((await send(`${world.running.baseUrl}/owner/me`, { headers: { cookie } })).status).toBe(200);
    expect((await post('/owner/sign-in', { token: tokenOf(link) })).status).toBe(410);
    expect(await lastSignIn()).toBe(signedIn);
  });

  test('a link expires after 15 minutes, and no other token is accepted as one', async () => {
    const token = tokenOf(await local('/owner/link', { email: organisation.owner.email }));
    world.clock.skewMs = 15 * MINUTE_MS + 1;
    expectEnvelope(await post('/owner/sign-in', { token }), 410, 'link_used');
    world.clock.skewMs = 0;
    expect((await post('/owner/sign-in', { token })).status).toBe(200);
    for (const wrong of ['', 'x', `abt_${'A'.repeat(43)}`, `sgn_${'A'.repeat(43)}`, localToken()])
      expectEnvelope(await post('/owner/sign-in', { token: wrong }), 410, 'link_used');
  });

  test('a browser’s cookie can read; a change needs the header that no form can send', async () => {
    const agent = await organisation.agent({ grants: {} });
    const signedIn = await post('/owner/sign-in', {
      token: tokenOf(await local('/owner/link', { email: organisation.owner.email })),
    });
    const cookie = cookieOf(signedIn);
    await expectStatus(200, send(`${world.running.baseUrl}/owner/agents`, { headers: { cookie } }));
    expectEnvelope(await post(`/owner/agents/${agent.id}/suspend`, {}, { cookie }), 403, 'forbidden');
    expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
    expect((await post(`/owner/agents/${agent.id}/suspend`, {}, { cookie, 'x-svc-csrf': '1' })).status).toBe(200);
    // The cookie is valid for owner routes only.
    expectEnvelope(await send(`${world.running.baseUrl}/v1/agents/me`, { headers: { cookie } }), 401, 'missing_token');
    expectEnvelope(
      await post('/owner/keys/rotate', { use: 'evidence' }, { cookie, 'x-svc-csrf': '1' }),
      401,
      'missing_token',
    );
    const out = await post('/owner/sign-out', {}, { cookie, 'x-svc-csrf': '1' });
    expect(out.headers.get('set-cookie')).toMatch(/^svc_owner_\d+=; Path=\/; Max-Age=0/);
  });

  const sessionOf = (owner: OwnerTable = organisation.owner) => mintOwnerSession(world.running.broker, owner).token;
  const as = (session: string, path: string, init: RequestInit = {}, url = world.running.baseUrl) =>
    send(url + path, { ...init, headers: { authorization: `Bearer ${session}`, ...init.headers } });

  test('/owner/me returns role, organisation and the end of the session', async () => {
    const viewer = await organisation.addOwner('viewer');
    const { body } = await expectStatus(200, as(sessionOf(viewer), '/owner/me'));
    expect(body).toEqual({
      id: viewer.id,
      email: viewer.email,
      role: 'viewer',
      organisation: { id: organisation.id, name: expect.stringMatching(/^org-/) },
      session_expires_at: expect.stringMatching(/Z$/),
      sign_in: 'local',
      base_url: world.running.baseUrl,
      redirect_uri: `${world.running.baseUrl}/console/connected/${organisation.id}`,
      organisations: [],
    });
    const left = Date.parse(body.session_expires_at) - Date.now();
    expect([left > 11.9 * 60 * MINUTE_MS, left <= 12 * 60 * MINUTE_MS]).toEqual([true, true]);
    expectEnvelope(await send(`${world.running.baseUrl}/owner/me`, {}), 401, 'missing_token');
  });

  test('the sign-in options say how owners sign in', async () => {
    const answer = await send(`${world.running.baseUrl}/owner/sign-in-options`, {});
    expect([answer.status, answer.body]).toEqual([200, { method: 'local' }]);
  });

  test('signing out ends the session itself: copies of the cookie, and the bearer in it, are refused', async () => {
    const signedIn = await post('/owner/sign-in', {
      token: tokenOf(await local('/owner/link', { email: organisation.owner.email })),
    });
    const cookie = cookieOf(signedIn);
    const session = cookie.slice(cookie.indexOf('=') + 1);
    const another = sessionOf();
    expect((await as(session, '/owner/me')).status).toBe(200);
    const out = await post('/owner/sign-out', {}, { cookie, 'x-svc-csrf': '1' });
    expect([out.status, out.body]).toEqual([200, { signed_out: true }]);
    const copied = await send(`${world.running.baseUrl}/owner/me`, { headers: { cookie } });
    expectEnvelope(copied, 401, 'token_expired');
    expect(copied.body.detail).toContain('signed out');
    expectEnvelope(await as(session, '/owner/me'), 401, 'token_expired');
    expectEnvelope(await as(session, '/owner/sign-out', { method: 'POST' }), 401, 'token_expired');
    expectEnvelope(await as(session, `/v1/audit/${crypto.randomUUID()}/receipt`, {}), 401, 'token_expired');
    // The owner's other sessions stay valid.
    expect((await as(another, '/owner/me')).status).toBe(200);
    expectEnvelope(await as(another, '/owner/sign-out', { method: 'POST', body: '{' }), 400, 'invalid_request');
    expect((await as(another, '/owner/sign-out', { method: 'POST' })).status).toBe(200);
    expectEnvelope(await as(another, '/owner/me'), 401, 'token_expired');
  });

  test('a signed-out session is stored until it would have expired, and then deleted', async () => {
    const count = async () => (await world.db.selectFrom('ended_sessions').selectAll().execute()).length;
    const ended = sessionOf();
    await as(ended, '/owner/sign-out', { method: 'POST' });
    const before = await count();
    await purgeEndedSessions(world.db, Date.now());
    expect(await count()).toBe(before);
    expectEnvelope(await as(ended, '/owner/me'), 401, 'token_expired');
    await purgeEndedSessions(world.db, Date.now() + 13 * 60 * MINUTE_MS);
    expect(await count()).toBe(0);
  });

  test('authenticating a session takes one statement', async () => {
    const session = sessionOf();
    let statements = 0;
    const counted = world.db.withPlugin({
      transformQuery: ({ node }) => {
        statements++;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const broker = { ...world.running.broker, store: { ...world.running.broker.store, db: counted } };
    expect(await authenticateSession(broker, session)).toMatchObject({ kind: 'owner' });
    expect(statements).toBe(1);
  });

  test('a removed owner is refused at the next request, and a changed role applies to it', async () => {
    const owner = await organisation.addOwner('admin');
    const session = sessionOf(owner);
    expect((await as(session, '/owner/me')).body.role).toBe('admin');
    await world.db.updateTable('owners').set({ role: 'viewer' }).where('id', '=', owner.id).execute();
    expect((await as(session, '/owner/me')).body.role).toBe('viewer');
    const agent = await organisation.agent({ grants: {} });
    expectEnvelope(
      await post(`/owner/agents/${agent.id}/suspend`, {}, { authorization: `Bearer ${session}` }),
      403,
      'forbidden',
    );
    await world.db.deleteFrom('owners').where('id', '=', owner.id).execute();
    expectEnvelope(await as(session, '/owner/me'), 401, 'invalid_token');
  });

  test.each<[string, Record<string, unknown>]>([
    ['without jti, as older releases made them', { jti: undefined }],
    ['with a jti that is no text', { jti: 1 }],
    ['of another broker', { iss: 'http://other.test' }],
    ['for another audience', { aud: 'http://localhost' }],
    ['without an organisation', { org: undefined }],
    ['of another organisation', { org: crypto.randomUUID() }],
    ['without a beginning', { iat: undefined }],
    ['without an end', { exp: undefined }],
    ['of nobody', { sub: undefined }],
  ])('a session %s is refused', async (_name, different) => {
    const { broker } = world.running;
    const claims = { ...decodeJwt(sessionOf()), ...different } as JsonObject;
    const present = Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== undefined));
    const forged = signCompact(broker.keys.signer('session', Date.now()), { typ: 'svc-owner+jwt' }, present);
    expectEnvelope(await as(forged, '/owner/me'), 401, 'invalid_token');
  });

  test('a session with a wrong signature is refused with invalid_signature, as a bearer and as a cookie', async () => {
    const session = sessionOf();
    const cut = session.lastIndexOf('.') + 1;
    const forged = `${session.slice(0, cut)}${session.slice(cut, -8)}AAAAAAAA`;
    expectEnvelope(await as(forged, '/owner/me'), 401, 'invalid_signature');
    const cookie = { cookie: `${sessionCookieName(world.running.baseUrl)}=${forged}` };
    expectEnvelope(await send(`${world.running.baseUrl}/owner/me`, { headers: cookie }), 401, 'invalid_signature');
    expect((await as(session, '/owner/me')).status).toBe(200);
  });

  test.runIf(store === 'postgres')('a session signed out on one replica is refused by all of them', async () => {
    const replica = await serve(
      readConfig({
        ...world.environment,
        PORT: '0',
        BASE_URL: world.running.baseUrl,
        AGENT_BROKER_DATA: newFolder(),
        AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
      }),
    );
    try {
      const { url } = JSON.parse(readFileSync(runFile(replica.broker.config.dataFolder), 'utf8'));
      const session = sessionOf();
      expect((await as(session, '/owner/me', {}, url)).status).toBe(200);
      await as(session, '/owner/sign-out', { method: 'POST' });
      expectEnvelope(await as(session, '/owner/me', {}, url), 401, 'token_expired');
    } finally {
      await replica.stop();
    }
  });

  test('keys rotate separately by use, and only for the operator', async () => {
    for (const use of ['evidence', 'issuing', 'root', 'session']) {
      const answer = await local('/owner/keys/rotate', { use });
      expect(answer.body).toMatchObject({ use, kid: expect.any(String) });
      expect(Date.parse(answer.body.signs_from)).toBeGreaterThan(Date.now());
    }
    for (const body of [{}, { use: 'all' }, { use: 'evidence', now: true }])
      expectEnvelope(await local('/owner/keys/rotate', body), 400, 'invalid_request');
    // A new session key does not end sessions signed with the previous one.
    const session = mintOwnerSession(world.running.broker, organisation.owner).token;
    world.clock.skewMs = 3 * MINUTE_MS;
    const answer = await send(`${world.running.baseUrl}/owner/agents`, {
      headers: { authorization: `Bearer ${session}` },
    });
    expect(answer.status).toBe(200);
    expect((await organisation.ask('GET', '/owner/agents')).status).toBe(200);
  });

  test('KEY-03 the master key can rotate during calls when one process holds it, and is refused otherwise', async () => {
    const agent = await organisation.agent();
    const calls = Array.from({ length: 20 }, () => agent.act(READ));
    const answer = await local('/owner/keys/rotate', { use: 'master' });
    if (store === 'postgres') expectEnvelope(answer, 409, 'conflict');
    else expect(answer.body).toMatchObject({ use: 'master', rewrapped: expect.any(Number) });
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
  });
});
