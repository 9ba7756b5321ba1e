/** Faulty or hostile OAuth servers and browsers: nothing is connected, nothing is disclosed, and the broker stays available. */

import { beforeEach, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { type Answer, expectStatus, send, type TestAgent } from '../world/agent.ts';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { attentionOf, browserOf, connectAtOnce, outlive, pressConnect } from '../world/browser/connecting.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { type LyingServer, startLyingServer } from '../world/servers/lying-authorization-server.ts';
import { MINUTE_MS } from '../world/times.ts';
import { type Organisation, shared, startWorld } from '../world/world.ts';

const READ = { platform: 'docs', endpoint: '/items', method: 'GET', scope: 'docs:read' };
const JSON_TYPE = { 'content-type': 'application/json' };
const declines = (error: string) => (parameters: URLSearchParams) => {
  parameters.delete('code');
  parameters.set('error', error);
};

describe('connecting with a faulty or hostile party', () => {
  let organisation: Organisation;
  let agent: TestAgent;
  let connection: string;
  const server = shared(() => startLyingServer());
  const other = shared(() => startLyingServer());
  // Not givenWorld: the clock is not set back between the tests.
  const world = shared(() =>
    startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: `${server.address},${other.address}` }),
  );
  beforeEach(async () => {
    // Cached discovery results have expired.
    world.clock.skewMs += 11 * MINUTE_MS;
    server.beHonest();
    server.asked.length = 0;
    server.seen.length = 0;
    organisation = await world.organisation();
    connection = await platform();
    agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { docs: { scopeList: ['docs:read'] } },
    });
    agent.clock = () => Date.now() + world.clock.skewMs;
  });

  async function platform(auth: Record<string, unknown> = server.auth(), id = 'docs', fresh = true): Promise<string> {
    const manifest = { base_url: `${server.issuer}/api`, auth, scopes: { 'docs:read': ['GET /items'] } };
    await organisation.platform({ id, manifest, secret: null });
    return fresh ? await organisation.connection(id, { secret: null }) : connection;
  }
  const connect = () => connectAtOnce(world, organisation.owner, connection);
  const attention = () => attentionOf(world, organisation);
  const state = async () =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { id: string }) => one.id === connection,
    ).state;
  /** Checks that nothing was connected, and that the person reads the reason. */
  async function expectRefused(visit: Visit, status: number, says: RegExp): Promise<void> {
    expect([visit.status, visit.headers.get('content-type')], visit.text).toEqual([status, 'text/html; charset=utf-8']);
    expect(visit.text).toContain('<h1>Not connected</h1>');
    expect(visit.text).toMatch(says);
    expect(visit.text).not.toMatch(/CANARY|<script/);
    expect(await state()).toBe('not_connected');
  }
  async function visitOf(browser = browserOf(world, organisation.owner)): Promise<Visit> {
    const begun = await expectStatus(200, pressConnect(world, browser, connection));
    return await browser.get(begun.body.authorization_url);
  }

  test('control case: with honest parties the platform is connected and called', async () => {
    await connect();
    expect(await state()).toBe('connected');
    const answer = await agent.act(READ);
    expect([answer.status, answer.body.data], answer.text).toEqual([200, { items: [], echo: '[redacted]' }]);
  });

  test.each<[string, (parameters: URLSearchParams) => void, number, RegExp]>([
    ['another issuer', (p) => p.set('iss', 'https://evil.test'), 502, /cannot be used/],
    ['no issuer, though it says that it names it', (p) => p.delete('iss'), 502, /cannot be used/],
    ['two issuers', (p) => p.append('iss', p.get('iss')!), 400, /not from the authorization server/],
    ['no code', (p) => p.delete('code'), 400, /not from the authorization server/],
    ['two codes', (p) => p.append('code', 'x'), 400, /not from the authorization server/],
    ['a code and an error', (p) => p.set('error', 'access_denied'), 400, /not from the authorization server/],
    ['another state', (p) => p.set('state', `sta_${'A'.repeat(43)}`), 400, /No OAuth flow that was started/],
    ['no state', (p) => p.delete('state'), 400, /No OAuth flow that was started/],
    ['two states', (p) => p.append('state', p.get('state')!), 400, /No OAuth flow that was started/],
    ['a refusal', declines('access_denied'), 403, /\(access_denied\)\. Start again\./],
    ['a scope that it does not know', declines('invalid_scope'), 403, /invalid_scope\)\. An admin corrects the scopes/],
    [
      'a client that it does not allow',
      declines('unauthorized_client'),
      403,
      /unauthorized_client\)\. An admin allows/,
    ],
    ['an outage', declines('temporarily_unavailable'), 403, /Try again shortly\./],
    ['a refusal in words of its own', declines('<script>x</script>'), 403, /an error/],
  ])('a callback with %s connects nothing', async (_name, lie, status, says) => {
    server.callback = lie;
    await expectRefused(await visitOf(), status, says);
    expect(server.asked).toHaveLength(0);
  });
  test.each<[string, (parameters: URLSearchParams) => void, boolean]>([
    ['its own', () => {}, true],
    ['none', (p) => p.delete('iss'), true],
    ['another one of its host', (p) => p.set('iss', `${server.issuer}/tenant`), true],
    ['another host’s', (p) => p.set('iss', other.issuer), false],
    ['no address', (p) => p.set('iss', 'evil'), false],
  ])('a server that is configured by its endpoints, with an iss in its callback: %s', async (_name, lie, taken) => {
    const { issuer } = server;
    await platform(
      server.auth({ issuer: undefined, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token` }),
      'docs',
      false,
    );
    server.callback = lie;
    if (taken) await connect();
    else await expectRefused(await visitOf(), 400, /not from the authorization server/);
    expect(server.seen.filter((one) => one.includes('well-known')).length).toBe(0);
  });

  test.each<[string, string[] | undefined, boolean]>([
    ['none', undefined, false],
    ['only the form', ['client_secret_post'], true],
    ['both', ['client_secret_post', 'client_secret_basic'], false],
  ])('the client secret is sent as the server’s metadata say: %s', async (_name, methods, isInForm) => {
    organisation = await world.organisation();
    const secret = 'a-secret-of-the-client';
    const auth = server.auth({ client_secret: { env: 'DOCS_SECRET' } });
    const docs = { kind: 'rest', base_url: `${server.issuer}/api`, auth, scopes: { 'docs:read': ['GET /items'] } };
    const text = JSON.stringify({ platforms: { docs }, connections: { main: { platform: 'docs' } } });
    const values = { 'env:DOCS_SECRET': secret };
    await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', { text, values }));
    connection = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
    server.metadata = { token_endpoint_auth_methods_supported: methods };
    await connect();
    expect(server.asked.at(-1)!.get('client_secret')).toBe(isInForm ? secret : null);
  });

  test.each<[string, Record<string, unknown>]>([
    ['a token of another type', { token_type: 'mac' }],
    ['a token of type DPoP', { token_type: 'DPoP' }],
    ['a token without a type', { token_type: undefined }],
    ['no token', { access_token: undefined }],
    ['a token that is no text', { access_token: { $ne: 1 } }],
    ['a token too short to be found again', { access_token: 'x234567' }],
    ['a token that no header carries', { access_token: 'CANARY-line\r\nfeed-0123456789' }],
    ['a token of 20 KiB', { access_token: 'x'.repeat(20_000) }],
    ['an ID token that is none', { id_token: 'CANARY.nonsense' }],
    ['an ID token that is no text', { id_token: [] }],
    [
      'an ID token of somebody else',
      { id_token: `${btoa('{"alg":"RS256"}')}.${btoa('{"iss":"https://evil.test"}')}.x` },
    ],
    ['scopes that are no text', { scope: ['items.read'] }],
  ])('a token response with %s is refused; only malformed scopes are ignored', async (_name, lie) => {
    server.token = lie;
    if (Array.isArray(lie.scope)) {
      // Malformed scopes count as missing: the requested ones apply.
      await connect();
      return;
    }
    await expectRefused(await visitOf(), 502, /cannot be used/);
  });

  test.each<[string, unknown]>([
    ['text', 'soon'],
    ['a negative number', -1],
    ['nothing', null],
    ['an endless number', 1e300],
    ['a fraction', 0.001],
    ['an object', {}],
  ])('expires_in that is %s: the token is used until it is refused', async (_name, expires_in) => {
    server.token = { expires_in };
    await connect();
    for (let i = 0; i < 3; i++) expect((await agent.act(READ)).status).toBe(200);
    expect(server.asked).toHaveLength(1);
  });

  test.each<[string, Parameters<LyingServer['answers']['set']>[1], RegExp]>([
    ['10 MB', (_q, response) => response.writeHead(200, JSON_TYPE).end('x'.repeat(1e7)), /could not be reached/],
    [
      'a redirect',
      (_q, response) => response.writeHead(307, { location: `${server.issuer}/stolen` }).end(),
      /cannot be used/,
    ],
    [
      'HTML',
      (_q, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>CANARY'),
      /cannot be used/,
    ],
    [
      'half a JSON',
      (_q, response) => response.writeHead(200, JSON_TYPE).end('{"access_token":"CANARY'),
      /cannot be used/,
    ],
    ['a list', (_q, response) => response.writeHead(200, JSON_TYPE).end('["CANARY"]'), /cannot be used/],
    ['a closed connection', (_q, response) => response.socket!.destroy(), /could not be reached/],
    [
      'a request to slow down',
      (_q, response) => response.writeHead(429, JSON_TYPE).end('{"error":"slow_down"}'),
      /slow_down\)\. Try again shortly\./,
    ],
    [
      'a request that it cannot read',
      (_q, response) => response.writeHead(400, JSON_TYPE).end('{"error":"invalid_request"}'),
      /invalid_request\)\. An admin compares client_id, redirect URI/,
    ],
    [
      'an error, with 200',
      (_q, response) => response.writeHead(200, JSON_TYPE).end('{"error":"incorrect_client_credentials"}'),
      /incorrect_client_credentials\)\. An admin corrects client_id and client_secret/,
    ],
  ])('a token endpoint that answers with %s connects nothing', async (_name, lie, says) => {
    server.answers.set('/token', lie);
    await expectRefused(await visitOf(), 502, says);
    expect(server.seen).not.toContain('POST /stolen');
    expect(server.seen).not.toContain('GET /stolen');
  });

  test('a code that the server no longer accepts connects nothing', async () => {
    server.answers.set('/token', (_q, response) => response.writeHead(400, JSON_TYPE).end('{"error":"invalid_grant"}'));
    await expectRefused(await visitOf(), 400, /invalid_grant\)\. Start again\./);
  });

  test('an expiring token without a refresh token: owners see when it expires, and no request is sent afterwards', async () => {
    server.token = { refresh_token: undefined, expires_in: 600 };
    await connect();
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    expect(connections[0]).toMatchObject({ state: 'connected', oauth: { refreshes: false, account: null } });
    expect((await agent.act(READ)).status).toBe(200);
    world.clock.skewMs += 11 * MINUTE_MS;
    const { length } = server.seen;
    const answer = await agent.act(READ);
    expect([answer.status, answer.body.error, server.seen.length]).toEqual([409, 'platform_reauth_needed', length]);
    expect(await state()).toBe('reauth_needed');
    const tried = await organisation.ask('POST', `/owner/connections/${connection}/test`);
    expect(tried.body.detail).toContain('connect it again');
  });

  test('a server that again grants less than an agent’s request needs: the page names the scope, and the request stays pending', async () => {
    const manifest = {
      base_url: `${server.issuer}/api`,
      auth: server.auth(),
      scopes: { 'docs:read': ['GET /items'] },
      needs: { 'docs:read': ['items.all'] },
    };
    await organisation.platform({ id: 'docs', manifest, secret: null });
    await connect();
    const waiting = await agent.act(READ);
    expect([waiting.status, waiting.body.error], waiting.text).toEqual([409, 'needs_consent']);
    const visit = await visitOf();
    expect([visit.status, visit.text.includes('it did not grant what docs:read needs')], visit.text).toEqual([
      200,
      true,
    ]);
    expect((await agent.get(waiting.body.poll_url)).body.status).toBe('pending');
    server.token = { scope: 'items.read items.all' };
    await connect();
    expect((await agent.get(waiting.body.poll_url)).body.status).toBe('approved');
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('an empty scope in the token response means that nothing was granted, a missing one that everything requested was', async () => {
    const manifest = (scopes: string[]) => ({
      base_url: `${server.issuer}/api`,
      auth: server.auth({ scopes }),
      scopes: { 'docs:read': ['GET /items'] },
      needs: { 'docs:read': ['items.read'] },
    });
    const granted = async () =>
      (await organisation.ask('GET', '/owner/connections')).body.connections[0].upstream_scopes;
    await organisation.platform({ id: 'docs', manifest: manifest(['items.read']), secret: null });
    server.token = { scope: '' };
    await connect();
    expect(await granted()).toEqual([]);
    expect((await agent.act(READ)).body.error).toBe('needs_consent');
    server.token = { scope: undefined };
    await connect();
    expect(await granted()).toEqual(['items.read']);
    expect((await agent.act(READ)).status).toBe(200);
    await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
    await organisation.platform({ id: 'docs', manifest: manifest([]), secret: null });
    await connect();
    expect(await granted()).toBeNull();
  });

  test('an account name that is truncated within a character is displayed well-formed', async () => {
    await platform(server.auth({ account: { url: `${server.issuer}/me`, pointer: '/login' } }), 'docs', false);
    const login = `${'a'.repeat(199)}😀`;
    server.answers.set('/me', (_q, response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ login })));
    await connect();
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    expect(connections[0]).toMatchObject({ state: 'connected', oauth: { account: `${'a'.repeat(199)}\uFFFD` } });
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['call themselves another', { issuer: 'https://evil.test' }, /no metadata/],
    ['know no PKCE by S256', { code_challenge_methods_supported: ['plain'] }, /PKCE/],
    ['send people to a script', { authorization_endpoint: 'javascript:alert(1)' }, /authorization_endpoint/],
    ['name no token endpoint', { token_endpoint: undefined }, /token_endpoint/],
    ['name a file', { token_endpoint: 'file:///etc/passwd' }, /token_endpoint/],
    ['name a token endpoint with a user', { token_endpoint: 'https://me@as.example/token' }, /token_endpoint/],
    ['name a token endpoint with a password', { token_endpoint: 'https://:pw@as.example/token' }, /token_endpoint/],
    ['name a token endpoint with a fragment', { token_endpoint: 'https://as.example/token#x' }, /token_endpoint/],
  ])('metadata that %s is refused', async (_name, lie, says) => {
    server.metadata = lie;
    const begun = await pressConnect(world, browserOf(world, organisation.owner), connection);
    expectEnvelope(begun, 502, 'upstream_unreachable');
    expect(begun.body.detail).toMatch(says);
    // It is not cached: whoever corrects the server can connect immediately.
    server.metadata = {};
    await expectStatus(200, pressConnect(world, browserOf(world, organisation.owner), connection));
  });

  test('MC-03 metadata with endpoints in the broker’s network is refused', async () => {
    server.metadata = { token_endpoint: 'http://127.0.0.1:9/token', revocation_endpoint: 'http://169.254.169.254/x' };
    await expectRefused(await visitOf(), 502, /could not be reached/);
  });

  test('a flow can be finished only by the browser session that began it, and once', async () => {
    const admin = await organisation.addOwner('admin');
    const viewer = await organisation.addOwner('viewer');
    const begin = async () => {
      const browser = browserOf(world, organisation.owner);
      const begun = await pressConnect(world, browser, connection);
      const halfway = new Browser();
      halfway.stopAt = (url) => url.origin === world.running.baseUrl;
      return { browser, callback: (await halfway.get(begun.body.authorization_url)).url };
    };
    const { browser, callback } = await begin();
    const pending = await begin();
    for (const other of [admin, viewer, organisation.owner])
      await expectRefused(await browserOf(world, other).get(callback), 403, /Another owner, or another browser/);
    // Without a cookie the browser is redirected once, from a page of the broker; then it is refused as not signed in.
    const stranger = new Browser();
    const bounced = await stranger.get(callback);
    expect(bounced.text).toContain('http-equiv="refresh"');
    await expectRefused(await stranger.get(`${callback}&again=1`), 403, /not signed in/);
    const crossSite = await browser.get(callback, { 'sec-fetch-site': 'cross-site' });
    expect(crossSite.text).toContain('http-equiv="refresh"');
    expect(server.asked).toHaveLength(0);
    // None of these attempts consumed the flow: the right browser can finish it, once.
    expect((await browser.get(callback)).text).toContain('The platform is connected.');
    const again = await browser.get(callback);
    expect([again.status, server.asked.length], again.text).toEqual([400, 1]);
    expect(await state()).toBe('connected');
    // A finished flow ends no other one.
    expect((await pending.browser.get(pending.callback)).text).toContain('The platform is connected.');
  });

  test('a flow begun by a program can be finished by any session of the same owner, and by no other owner', async () => {
    const begun = await organisation.ask('POST', `/owner/connections/${connection}/oauth/start`);
    const halfway = new Browser();
    halfway.stopAt = (url) => url.origin === world.running.baseUrl;
    const { url } = await halfway.get(begun.body.authorization_url);
    const admin = await organisation.addOwner('admin');
    await expectRefused(await browserOf(world, admin).get(url), 403, /Another owner/);
    expect((await browserOf(world, organisation.owner).get(url)).text).toContain('The platform is connected.');
  });

  test('a flow cannot be finished after 10 minutes, nor after the owner lost the role', async () => {
    const browser = browserOf(world, organisation.owner);
    const begun = await pressConnect(world, browser, connection);
    world.clock.skewMs += 11 * MINUTE_MS;
    await expectRefused(await browser.get(begun.body.authorization_url), 400, /10 minutes/);
    const once = await pressConnect(world, browser, connection);
    await world.db.updateTable('owners').set({ role: 'approver' }).where('id', '=', organisation.owner.id).execute();
    const visit = await browser.get(once.body.authorization_url);
    expect([visit.status, visit.text.includes('Not connected')]).toEqual([403, true]);
  });

  test('only admins can begin a flow, only at a platform with OAuth and a configured client', async () => {
    for (const role of ['viewer', 'approver'] as const) {
      const by = await organisation.addOwner(role);
      const path = `/owner/connections/${connection}/oauth/start`;
      expectEnvelope(await organisation.ask('POST', path, undefined, by), 403, 'forbidden');
    }
    await organisation.platform({ id: 'plain', secret: null });
    const plain = await organisation.connection('plain');
    const without = await platform(server.auth({ client_secret: { env: 'NOT_GIVEN' } }), 'without');
    for (const [id, says] of [
      [plain, /does not use OAuth/],
      [without, /apply the governance file/],
    ] as const) {
      const refused = await organisation.ask('POST', `/owner/connections/${id}/oauth/start`);
      expectEnvelope(refused, 409, 'conflict');
      expect(refused.body.detail).toMatch(says);
    }
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const url = `${world.running.baseUrl}/owner/connections/${connection}/oauth/start`;
    expectEnvelope(
      await send(url, { method: 'POST', headers: { cookie: `${sessionCookieName(world.running.baseUrl)}=${token}` } }),
      403,
      'forbidden',
    );
  });

  describe('during a refresh', () => {
    beforeEach(async () => {
      await connect();
      await outlive(world, connection);
    });
    const expectUnavailable = async (answer: Answer) => {
      expectEnvelope(answer, 502, 'upstream_unreachable');
      expect(answer.body).toMatchObject({ code: 'token_unavailable', outcome: 'not_sent' });
      expect(answer.text).not.toContain('CANARY');
      expect(await state()).toBe('connected');
    };

    test.each<[string, Parameters<LyingServer['answers']['set']>[1]]>([
      ['10 MB', (_q, response) => response.writeHead(200).end('x'.repeat(1e7))],
      ['a redirect', (_q, response) => response.writeHead(307, { location: `${server.issuer}/stolen` }).end()],
      ['500', (_q, response) => response.writeHead(500).end('CANARY')],
      [
        'a token of another type',
        (_q, response) =>
          response.writeHead(200, JSON_TYPE).end('{"access_token":"CANARY-0123456789","token_type":"mac"}'),
      ],
      ['an error of its own', (_q, response) => response.writeHead(400, JSON_TYPE).end('{"error":"try_later"}')],
      ['a closed connection', (_q, response) => response.socket!.destroy()],
    ])('%s keeps the connection, and the next refresh succeeds', async (_name, lie) => {
      server.answers.set('/token', lie);
      await expectUnavailable(await agent.act(READ));
      const { length } = server.asked;
      // No other request is sent immediately afterwards.
      await expectUnavailable(await agent.act(READ));
      expect(server.asked).toHaveLength(length);
      server.beHonest();
      world.clock.skewMs += 3_000;
      expect((await agent.act(READ)).status).toBe(200);
    });

    test.each<[string, number]>([
      ['invalid_client', 401],
      ['unauthorized_client', 400],
      ['invalid_scope', 400],
    ])(
      '%s: an operator has to act, requests back off exponentially, and the refresh token is kept',
      async (error, status) => {
        server.answers.set('/token', (_q, response) =>
          response.writeHead(status, JSON_TYPE).end(JSON.stringify({ error })),
        );
        server.asked.length = 0;
        const expectRejected = async () => {
          const answer = await agent.act(READ);
          expectEnvelope(answer, 502, 'upstream_unreachable');
          expect(answer.body).toMatchObject({ code: 'client_rejected', outcome: 'not_sent' });
          expect(answer.body.detail).toMatch(new RegExp(`${error}.*operator.*does not help`));
        };
        // Pauses double after each attempt, up to 5 minutes.
        for (const [times, seconds] of [2, 4, 8, 16, 32, 64, 128, 256, 300, 300].entries()) {
          await expectRejected();
          expect(server.asked).toHaveLength(times + 1);
          world.clock.skewMs += seconds * 1000 - 500;
          await expectRejected();
          expect(server.asked).toHaveLength(times + 1);
          world.clock.skewMs += 1_000;
        }
        const [shown] = (await organisation.ask('GET', '/owner/connections')).body.connections;
        expect(await attention()).toEqual([1]);
        expect(shown).toMatchObject({
          state: 'needs_attention',
          oauth: { refreshes: true, rejected: { error, since: expect.any(String) } },
        });
        server.beHonest();
        expect((await agent.act(READ)).status).toBe(200);
        expect(server.asked.at(-1)!.get('refresh_token')).toBe(server.asked[0]!.get('refresh_token'));
        expect(await state()).toBe('connected');
        expect(await attention()).toEqual([0]);
      },
    );

    test('refreshes that fail for a minute while calls need the new token are shown to owners', async () => {
      const shown = async () => (await organisation.ask('GET', '/owner/connections')).body.connections[0];
      server.answers.set('/token', (_q, response) => response.writeHead(500).end('CANARY'));
      await expectUnavailable(await agent.act(READ));
      world.clock.skewMs += 59_000;
      await expectUnavailable(await agent.act(READ));
      expect(await shown()).toMatchObject({ state: 'connected', failing: null });
      expect(await attention()).toEqual([0]);
      world.clock.skewMs += 3_000;
      expect((await agent.act(READ)).body).toMatchObject({ code: 'token_unavailable' });
      expect(await attention()).toEqual([1]);
      expect(await shown()).toMatchObject({
        state: 'needs_attention',
        oauth: { refreshes: true },
        failing: {
          since: expect.any(String),
          detail: expect.stringContaining('sent a response that cannot be used'),
        },
      });
      server.beHonest();
      world.clock.skewMs += 3_000;
      expect((await agent.act(READ)).status).toBe(200);
      expect(await shown()).toMatchObject({ state: 'connected', failing: null });
    });

    test('a malformed ID token does not end the connection', async () => {
      server.token = { id_token: 'CANARY.nonsense' };
      expect((await agent.act(READ)).status).toBe(200);
    });

    test('without a new refresh token the old one is kept', async () => {
      server.token = { refresh_token: undefined };
      const [kept] = server.given.refresh.slice(-1);
      expect((await agent.act(READ)).status).toBe(200);
      await outlive(world, connection);
      await agent.act(READ);
      expect(server.asked.at(-1)!.get('refresh_token')).toBe(kept);
    });

    test('fewer scopes than before are stored immediately', async () => {
      server.token = { scope: 'profile' };
      expect((await agent.act(READ)).status).toBe(200);
      const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
      expect(connections[0].upstream_scopes).toEqual(['profile']);
    });

    test.each([
      ['for no other client', () => server.auth({ client_id: 'another' })],
      ['to no other server', () => other.auth()],
    ])('a refresh token is sent %s', async (_name, auth) => {
      const { length } = server.asked;
      await platform(auth(), 'docs', false);
      const answer = await agent.act(READ);
      expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
      expect([server.asked.length, other.asked.length]).toEqual([length, 0]);
      expect(await state()).toBe('reauth_needed');
    });

    /** Starts a call whose refresh is answered when `go` is called. */
    async function refreshUnderWay() {
      const { promise: arrived, resolve } = Promise.withResolvers<() => void>();
      server.answers.set('/token', (_q, response) => {
        server.answers.delete('/token');
        const tokens = {
          access_token: 'CANARY-late-0123456789-abcdef',
          refresh_token: 'CANARY-late-refresh-0123',
          token_type: 'bearer',
        };
        resolve(() => response.writeHead(200, JSON_TYPE).end(JSON.stringify(tokens)));
      });
      const call = agent.act(READ);
      return { call, go: await arrived };
    }
    const revocations = () => server.seen.filter((one) => one === 'POST /revoke').length;

    test('disconnected during the refresh: the new tokens are revoked and never used', async () => {
      const { call, go } = await refreshUnderWay();
      const ended = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
      expect([ended.status, ended.body.revoked], ended.text).toEqual([200, true]);
      const before = revocations();
      go();
      expect((await call).status).toBe(409);
      // The refresh token, and the access token.
      expect(revocations()).toBe(before + 2);
      expect((await agent.act(READ)).status).toBe(412);
    });

    test.each([
      ['the same account: revoking one of the new tokens might end the consent, so none is', 'ann', 0],
      ['another account: the new tokens are revoked', 'bob', 2],
    ])('connected again during the refresh as %s', async (_name, again, count) => {
      await platform(server.auth({ account: { url: `${server.issuer}/me`, pointer: '/login' } }), 'docs', false);
      let login = 'ann';
      server.answers.set('/me', (_q, response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ login })));
      await connect();
      await outlive(world, connection);
      const { call, go } = await refreshUnderWay();
      login = again;
      await connect();
      const before = revocations();
      go();
      expect((await call).status).toBe(200);
      expect(revocations()).toBe(before + count);
    });
  });

  describe('tokens that are no longer used', () => {
    let revoked: string[];
    beforeEach(() => {
      revoked = [];
      server.answers.set('/revoke', (_q, response, body) => {
        revoked.push(new URLSearchParams(body).get('token')!);
        response.writeHead(200).end();
      });
    });
    const given = (at: number) => [server.given.refresh.at(at), server.given.access.at(at)];

    test('Disconnect revokes the refresh token and the access token', async () => {
      await connect();
      const { body } = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
      expect([body.revoked, revoked]).toEqual([true, given(-1)]);
    });

    test('Disconnect sends no token to another server that the manifest names meanwhile', async () => {
      await connect();
      await platform(other.auth(), 'docs', false);
      other.seen.length = 0;
      const { body } = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
      expect([body.revoked, revoked, other.seen.includes('POST /revoke')]).toEqual([false, [], false]);
      expect(await state()).toBe('not_connected');
    });

    test.each<[string, () => Promise<unknown>]>([
      ['the manifest has no OAuth any more', () => platform({ type: 'bearer' }, 'docs', false)],
      [
        'they cannot be opened',
        () =>
          world.db
            .updateTable('connections')
            .set({ credential: Buffer.alloc(64) })
            .where('id', '=', connection)
            .execute(),
      ],
    ])('Disconnect deletes tokens that cannot be revoked because %s', async (_what, change) => {
      await connect();
      await change();
      const path = `/owner/connections/${connection}/oauth/disconnect`;
      const { body } = await expectStatus(200, organisation.ask('POST', path));
      expect([body.revoked, revoked]).toEqual([false, []]);
      const row = world.db
        .selectFrom('connections')
        .select(['credential', 'refresh_token'])
        .where('id', '=', connection);
      expect(await row.executeTakeFirst()).toEqual({ credential: null, refresh_token: null });
    });

    test('connecting as another account revokes the previous tokens; connecting as the same one does not', async () => {
      await platform(server.auth({ account: { url: `${server.issuer}/me`, pointer: '/login' } }), 'docs', false);
      let login = 'ann';
      server.answers.set('/me', (_q, response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify({ login })));
      await connect();
      await connect();
      expect(revoked).toEqual([]);
      login = 'bob';
      await connect();
      expect(revoked).toEqual(given(-2));
      expect((await agent.act(READ)).status).toBe(200);
    });
  });

  test('without a revocation endpoint, or without an answer of the server, the tokens are deleted here nevertheless', async () => {
    const path = `/owner/connections/${connection}/oauth/disconnect`;
    for (const revocation_endpoint of [undefined, `${server.issuer}/revoke#x`]) {
      server.metadata = { revocation_endpoint };
      await connect();
      const without = (await organisation.ask('POST', path)).body;
      expect([without.revoked, without.detail]).toEqual([false, expect.stringContaining('no revocation endpoint')]);
      server.beHonest();
      world.clock.skewMs += 11 * MINUTE_MS;
    }
    await connect();
    server.answers.set('/revoke', (_q, response) => response.socket!.destroy());
    const failed = (await organisation.ask('POST', path)).body;
    expect([failed.revoked, failed.detail]).toEqual([false, expect.stringContaining('could not be revoked')]);
    expect(await state()).toBe('not_connected');
  });
});
