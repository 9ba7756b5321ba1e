/** Connections that an owner makes at a real OAuth server: from Connect to calls, refreshes, and Disconnect. */
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Answer, expectStatus, send, type TestAgent } from '../world/agent.ts';
import type { Browser } from '../world/browser/browser.ts';
import { browserOf, pressConnect } from '../world/browser/connecting.ts';
import { govern as applyFile, docsManifest, READ_DOCS as READ } from '../world/docs-platform.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { CLIENT_ID, CLIENT_SECRET, startAuthorizationServer } from '../world/servers/authorization-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, type Organisation, shared } from '../world/world.ts';

describe.each(ONE_STORE)(`connections through OAuth on %s${postgresNote}`, (store) => {
  let organisation: Organisation;
  let agent: TestAgent;
  let connection: string;

  const server = shared(() => startAuthorizationServer());
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: server.address }));
  beforeAll(async () => {
    server.serve(world.running.baseUrl);
  });
  beforeEach(async () => {
    world.clock.skewMs = 0;
    server.slowMs = 0;
    server.instead = undefined;
    server.asked.length = 0;
    organisation = await world.organisation();
    await expectStatus(200, govern());
    connection = (await listed())[0].id;
    agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { docs: { scopeList: ['docs:read', 'docs:write'] } },
    });
  });

  const manifest = (scopes?: string[]) =>
    docsManifest(server, { needs: { 'docs:read': ['docs.read'], 'docs:write': ['docs.write'] } }, scopes);
  const govern = (document: object = {}, values?: object) =>
    applyFile(
      organisation,
      { platforms: { docs: manifest() }, connections: { main: { platform: 'docs' } }, ...document },
      values,
    );
  const listed = async () => (await organisation.ask('GET', '/owner/connections')).body.connections;
  const shown = async () => (await listed()).find((one: { id: string }) => one.id === connection);

  const browserHere = () => browserOf(world, organisation.owner);
  const start = (browser: Browser) => pressConnect(world, browser, connection);
  async function connect(login = 'ann'): Promise<void> {
    const browser = browserHere();
    const { body, text } = await start(browser);
    const visit = await server.consent(browser, login, body.authorization_url);
    expect(visit.status, visit.text || text).toBe(200);
    expect(visit.text).toContain('The platform is connected.');
  }

  test('from a governance file to a call: an admin connects, account and scopes are shown, the agent calls', async () => {
    expect(await shown()).toMatchObject({ state: 'not_connected', connects_by: 'oauth', oauth: null });
    const before = await agent.act(READ);
    expect([before.status, before.body.consent_url]).toEqual([
      412,
      `${world.running.baseUrl}/console/connections?connect=${connection}`,
    ]);
    await connect('ann');
    const one = await shown();
    expect(one).toMatchObject({
      state: 'connected',
      upstream_scopes: ['openid', 'email', 'docs.read'],
      revision: 1,
      oauth: { account: 'ann@docs.example', connected_by: organisation.owner.id, refreshes: true, refreshed_at: null },
    });
    const answer = await agent.act(READ);
    expect([answer.status, answer.body.data], answer.text).toEqual([200, { who: 'ann', echo: 'Bearer [redacted]' }]);
    expect(server.bearers.at(-1)).toBe(server.given.access.at(-1));
  });

  test('the authorization request has PKCE with S256, our state and the exact redirect URI; the token request has the verifier', async () => {
    const { body } = await start(browserHere());
    const { searchParams, origin, pathname } = new URL(body.authorization_url);
    expect([origin, pathname]).toEqual([server.issuer, '/auth']);
    expect(Object.fromEntries(searchParams)).toEqual({
      client_id: CLIENT_ID,
      response_type: 'code',
      redirect_uri: `${world.running.baseUrl}/console/connected/${organisation.id}`,
      scope: 'openid email docs.read',
      state: expect.stringMatching(/^sta_[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
    await connect();
    expect(server.asked[0]!.get('code_verifier')).toMatch(/^[\w-]{43}$/);
  });

  test('a token is refreshed before it expires, and its refresh token replaced', async () => {
    await connect();
    expect((await agent.act(READ)).status).toBe(200);
    expect(server.asked).toHaveLength(1);
    for (const hour of [1, 2, 3]) {
      world.clock.skewMs = hour * 550_000;
      expect((await agent.act(READ)).status).toBe(200);
      expect(server.asked.map((asked) => asked.get('grant_type'))).toHaveLength(1 + hour);
      expect(server.bearers.at(-1)).toBe(server.given.access.at(-1));
    }
    const used = server.asked.slice(1).map((asked) => asked.get('refresh_token'));
    expect(new Set(used).size).toBe(3);
    expect((await shown()).oauth.refreshed_at).not.toBeNull();
    // The new token stays in use for a while.
    expect((await agent.act(READ)).status).toBe(200);
    expect(server.asked).toHaveLength(4);
  });

  test('a token that the platform refuses is refreshed once, and the call repeated', async () => {
    await connect();
    world.clock.skewMs = 60_000;
    await server.end(server.given.access.at(-1)!);
    const before = server.bearers.length;
    const answer = await agent.act(READ);
    expect([answer.status, server.bearers.length - before], answer.text).toEqual([200, 2]);
    expect((await shown()).state).toBe('connected');
    // A second refusal shortly after is passed on: the token is not the cause.
    await server.end(server.given.access.at(-1)!);
    const asked = server.asked.length;
    const refused = await agent.act(READ);
    expect([refused.status, refused.body._meta.upstream_status], refused.text).toEqual([200, 401]);
    expect(server.asked).toHaveLength(asked);
  });

  function expectReauth(answer: Answer) {
    expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
    const url = `${world.running.baseUrl}/console/connections?connect=${connection}`;
    expect(answer.body).toMatchObject({
      platform: 'docs',
      scope: 'docs:read',
      consent_requested: false,
      connect_url: url,
      consent_url: url,
      audit_id: expect.any(String),
      correlation_id: answer.headers.get('x-correlation-id'),
    });
  }

  test('after the consent was revoked at the server an owner has to connect again, and no further request is sent', async () => {
    await connect();
    // Revoked as if by the user at the server.
    await revokeAtServer(server.given.refresh.at(-1)!);
    world.clock.skewMs = 700_000;
    expectReauth(await agent.act(READ));
    expect((await shown()).state).toBe('reauth_needed');
    const { length } = server.seen;
    for (let i = 0; i < 3; i++) expectReauth(await agent.act(READ));
    expect(server.seen).toHaveLength(length);
    world.clock.skewMs = 0;
    await connect('bob');
    expect((await shown()).oauth.account).toBe('bob@docs.example');
    expect((await agent.act(READ)).body.data.who).toBe('bob');
  });

  async function revokeAtServer(token: string) {
    const authorization = `Basic ${Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64')}`;
    await send(`${server.issuer}/token/revocation`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ token }).toString(),
    });
  }

  test('an unavailable server makes a call fail, and the connection stays', async () => {
    await connect();
    await server.down();
    // Valid for another minute, so used as it is. The platform is the same server, so the call itself fails.
    world.clock.skewMs = 700_000;
    const answer = await agent.act(READ);
    expectEnvelope(answer, 502, 'upstream_unreachable');
    expect(answer.body).toMatchObject({ code: 'token_unavailable', outcome: 'not_sent' });
    await server.up();
    world.clock.skewMs += 5_000;
    expect((await agent.act(READ)).status).toBe(200);
    expect((await shown()).state).toBe('connected');
  });

  test('a held call that is approved after its token has expired is made with a new token', async () => {
    await connect();
    await organisation.guardrails([{ name: 'ask', effect: 'require_approval' }]);
    const held = await expectStatus(202, agent.act(READ));
    world.clock.skewMs = 700_000;
    const id = held.body.approval_id;
    expect((await organisation.approve(id)).status).toBe(200);
    const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', result: { status: 200, data: { who: 'ann' } } });
    expect(server.asked.map((asked) => asked.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
  });

  test('testing a connection refreshes an expired token', async () => {
    await connect();
    world.clock.skewMs = 700_000;
    const tried = await organisation.ask('POST', `/owner/connections/${connection}/test`);
    expect([tried.body.ok, tried.body.upstream_status], tried.text).toEqual([true, 200]);
    expect(server.asked).toHaveLength(2);
  });

  test('testing a connection replaces a token that the platform refuses, as a call does', async () => {
    await connect();
    const tested = async () => (await organisation.ask('POST', `/owner/connections/${connection}/test`)).body;
    world.clock.skewMs = 60_000;
    await server.end(server.given.access.at(-1)!);
    expect(await tested()).toMatchObject({ ok: true, upstream_status: 200 });
    expect(server.asked.map((form) => form.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
    // Refused just after it was issued: another token would not help, and nobody can type one.
    await server.end(server.given.access.at(-1)!);
    expect(await tested()).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/refused the credential\. Connect it/),
    });
    expect(server.asked).toHaveLength(2);
    world.clock.skewMs = 120_000;
    server.instead = (path) => (path === '/token' ? { status: 400, body: '{"error":"invalid_grant"}' } : undefined);
    expect(await tested()).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/revoked or has expired: connect it/),
    });
  });

  test('a secret set by an owner replaces the tokens, which are revoked', async () => {
    await connect();
    const { length } = server.seen.filter((one) => one === 'POST /token/revocation');
    const path = `/owner/connections/${connection}/secret`;
    const { body } = await organisation.ask('POST', path, { secret: 'a-token-0123456789' });
    expect(body).toMatchObject({ state: 'connected', oauth: null, upstream_scopes: null });
    expect(server.seen.filter((one) => one === 'POST /token/revocation')).toHaveLength(length + 2);
    world.clock.skewMs = 700_000;
    expectReauth(await agent.act(READ));
    expect([server.bearers.at(-1), server.asked.length]).toEqual(['a-token-0123456789', 1]);
  });

  test.each([
    ['gives it a secret', { main: { platform: 'docs', secret: { env: 'DOCS_TOKEN' } } }, 'a-token-0123456789'],
    ['leaves it out', {}, undefined],
  ])('a governance file that %s revokes its tokens, as an owner’s change does', async (_what, connections, bearer) => {
    await connect();
    const { length } = server.seen.filter((one) => one === 'POST /token/revocation');
    const values = {
      'env:DOCS_ID': CLIENT_ID,
      'env:DOCS_SECRET': CLIENT_SECRET,
      'env:DOCS_TOKEN': 'a-token-0123456789',
    };
    await expectStatus(200, govern({ connections }, values));
    expect(server.seen.filter((one) => one === 'POST /token/revocation')).toHaveLength(length + 2);
    const { status } = await agent.act(READ);
    if (bearer === undefined) expect(status).toBe(412);
    else expect(server.bearers.at(-1)).toBe(bearer);
    // Applied again the file changes nothing, and revokes nothing.
    expect((await govern({ connections }, values)).body.changes).toEqual([]);
    expect(server.seen.filter((one) => one === 'POST /token/revocation')).toHaveLength(length + 2);
  });

  test('connecting and disconnecting are recorded in the audit, without a receipt and without a token', async () => {
    await connect();
    await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    const events = rows.filter((row: { reason: string }) => /^connection_/.test(row.reason));
    expect(events.map((row: { reason: string }) => row.reason)).toEqual([
      'connection_disconnected',
      'connection_connected',
    ]);
    for (const event of events) {
      expectEnvelope(await organisation.ask('GET', `/v1/audit/${event.id}/receipt`), 404, 'not_found');
      expect(event).toMatchObject({ row_hash: expect.stringMatching(/^[0-9a-f]{64}$/), receipt_kid: null });
      expect(event.flags.change).toMatchObject({ by: organisation.owner.id });
    }
    expect(JSON.stringify(events[1])).toContain('ann@docs.example');
  });

  test('a built-in platform needs only a client: its endpoints are known without discovery', async () => {
    await organisation.ask('POST', '/owner/governance/apply', {
      text: JSON.stringify({
        platforms: {
          docs: manifest(),
          gmail: { use: 'gmail', auth: { type: 'oauth2', client_id: 'ours', client_secret: { env: 'DOCS_SECRET' } } },
        },
      }),
      values: { 'env:DOCS_ID': CLIENT_ID, 'env:DOCS_SECRET': CLIENT_SECRET },
    });
    const made = await organisation.ask('POST', '/owner/connections', { platform: 'gmail', label: 'gmail-main' });
    expect([made.status, made.body.state, made.body.connects_by]).toEqual([201, 'not_connected', 'oauth']);
    const begun = await organisation.ask('POST', `/owner/connections/${made.body.id}/oauth/start`);
    const url = new URL(begun.body.authorization_url);
    expect(url.origin + url.pathname).toBe('https://accounts.google.com/o/oauth2/v2/auth');
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      client_id: 'ours',
      access_type: 'offline',
      prompt: 'consent',
      code_challenge_method: 'S256',
      scope: expect.stringContaining('https://www.googleapis.com/auth/gmail'),
    });
    // A connection to a platform that needs a secret cannot be created without one.
    await organisation.platform({ id: 'plain', secret: null });
    const refused = await organisation.ask('POST', '/owner/connections', { platform: 'plain', label: 'plain' });
    expectEnvelope(refused, 400, 'invalid_request');
  });

  test('a call with a valid token makes no more store statements than one with a secret', async () => {
    await organisation.platform({ id: 'plain', manifest: { ...manifest(), auth: { type: 'bearer' } } });
    const other = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { plain: { scopeList: ['docs:read'] } },
    });
    await connect();
    const opened = world.running.broker.store;
    /** The smallest of a few counts, because the broker occasionally runs other statements. */
    const statements = async (call: () => Promise<Answer>) => {
      const counts: number[] = [];
      for (let i = 0; i < 12; i++) {
        const spies = [
          vi.spyOn(opened, 'read'),
          vi.spyOn(opened, 'exclusively'),
          vi.spyOn(opened.db.getExecutor(), 'executeQuery'),
          vi.spyOn(opened.db, 'transaction'),
        ];
        expect((await call()).status).toBe(200);
        counts.push(spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0));
        for (const spy of spies) spy.mockRestore();
      }
      return Math.min(...counts);
    };
    server.instead = (path) => (path === '/api/items' ? { status: 200, body: '{}' } : undefined);
    const withSecret = await statements(() => other.act({ ...READ, platform: 'plain' }));
    expect(withSecret).toBeGreaterThan(0);
    expect(await statements(() => agent.act(READ))).toBeLessThanOrEqual(withSecret);
  });

  test('50 concurrent calls with an expired token cause one refresh', async () => {
    await connect();
    world.clock.skewMs = 700_000;
    server.slowMs = 150;
    const answers = await Promise.all(Array.from({ length: 50 }, () => agent.act(READ)));
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(server.asked.map((asked) => asked.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
  });

  test('a call that needs a scope beyond the granted ones: 409 needs_consent, an access request, and where to connect', async () => {
    await connect();
    const write = { ...READ, method: 'POST', scope: 'docs:write', data: {} };
    const answer = await agent.act(write);
    expect([answer.status, answer.body.error], answer.text).toEqual([409, 'needs_consent']);
    expect(answer.body).toMatchObject({
      reason_code: 'needs_consent',
      consent_requested: true,
      connect_url: `${world.running.baseUrl}/console/connections?connect=${connection}`,
      poll_url: expect.stringContaining('/v1/access-request/status/'),
    });
    expect((await agent.act(write)).body.request_token).toBe(answer.body.request_token);
    const answered = async () => (await agent.get(answer.body.poll_url)).body.status;
    expect(await answered()).toBe('pending');
    // The manifest requests only docs.read; the scope of the access request is requested, too.
    const { body } = await start(browserHere());
    expect(new URL(body.authorization_url).searchParams.get('scope')).toBe('openid email docs.read docs.write');
    await connect();
    expect(await answered()).toBe('approved');
    expect((await agent.act(write)).status).toBe(200);
    const { access_requests: requests } = (await organisation.ask('GET', '/owner/access-requests?status=approved'))
      .body;
    expect(requests[0]).toMatchObject({ scope: 'docs:write', granted: [] });
    // The additional scope stays when connecting again, and is dropped by disconnecting.
    const asked = async () =>
      new URL((await start(browserHere())).body.authorization_url).searchParams.get('scope')!.split(' ');
    expect(await asked()).toContain('docs.write');
    await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
    expect(await asked()).toEqual(['openid', 'email', 'docs.read']);
  });

  test('disconnecting revokes the tokens at the server and deletes them here', async () => {
    await connect();
    const [access, refresh] = [server.given.access.at(-1)!, server.given.refresh.at(-1)!];
    const { status, body } = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
    expect([status, body.revoked, body.connection.state]).toEqual([200, true, 'not_connected']);
    expect(server.seen).toContain('POST /token/revocation');
    expect((await agent.act(READ)).status).toBe(412);
    const token = await send(`${server.issuer}/token`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${CLIENT_ID}:${CLIENT_SECRET}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refresh }).toString(),
    });
    expect(token.body.error).toBe('invalid_grant');
    expect(access).not.toBe('');
    expectEnvelope(
      await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`),
      409,
      'conflict',
    );
  });
});
