/** Connections that an owner makes at a real OAuth server: from Connect to calls, refreshing, and Disconnect. */
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Answer, send, type TestAgent } from '../world/agent.ts';
import {
  type AuthorizationServer,
  CLIENT_ID,
  CLIENT_SECRET,
  startAuthorizationServer,
} from '../world/authorization-server.ts';
import type { Browser } from '../world/browser.ts';
import { browserOf, pressConnect } from '../world/connecting.ts';
import { govern as applyFile, docsManifest, READ_DOCS as READ } from '../world/docs-platform.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

describe.each(ONE_STORE)(`connections through OAuth on %s${postgresNote}`, (store) => {
  let server: AuthorizationServer;
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let connection: string;

  beforeAll(async () => {
    server = await startAuthorizationServer();
    world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: server.address });
    server.serve(world.running.baseUrl);
  });
  beforeEach(async () => {
    world.clock.skewMs = 0;
    server.slowMs = 0;
    server.instead = undefined;
    server.asked.length = 0;
    organisation = await world.organisation();
    const applied = await govern();
    expect(applied.status, applied.text).toBe(200);
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

  test('from a governance file to a call: connect, who it is and what was granted are shown, the agent calls', async () => {
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

  test('what goes to the server: PKCE by S256, our state, the exact redirect URI; and the verifier to the token endpoint', async () => {
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

  test('before the token ends it is refreshed, and its refresh token replaced', async () => {
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
    // The next one is good for a while again.
    expect((await agent.act(READ)).status).toBe(200);
    expect(server.asked).toHaveLength(4);
  });

  test('a token that the platform refuses is refreshed once, and the call sent again', async () => {
    await connect();
    world.clock.skewMs = 60_000;
    await server.end(server.given.access.at(-1)!);
    const before = server.bearers.length;
    const answer = await agent.act(READ);
    expect([answer.status, server.bearers.length - before], answer.text).toEqual([200, 2]);
    expect((await shown()).state).toBe('connected');
    // Refused again at once: it is not the token.
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

  test('a consent that was ended at the server needs an owner again, and nobody is asked in vain', async () => {
    await connect();
    // As if it had been taken back there.
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

  test('a server that is away for a moment costs a call, and not the connection', async () => {
    await connect();
    await server.down();
    // Still good for a minute: used as it is. The platform is the same server, so it is not reached.
    world.clock.skewMs = 700_000;
    const answer = await agent.act(READ);
    expectEnvelope(answer, 502, 'upstream_unreachable');
    expect(answer.body).toMatchObject({ code: 'token_unavailable', outcome: 'not_sent' });
    await server.up();
    world.clock.skewMs += 5_000;
    expect((await agent.act(READ)).status).toBe(200);
    expect((await shown()).state).toBe('connected');
  });

  test('a call that was held, and approved when the token was over, is made with a new one', async () => {
    await connect();
    await organisation.guardrails([{ name: 'ask', effect: 'require_approval' }]);
    const held = await agent.act(READ);
    expect(held.status, held.text).toBe(202);
    world.clock.skewMs = 700_000;
    const id = held.body.approval_id;
    expect((await organisation.ask('POST', `/owner/approvals/${id}/approve`, {})).status).toBe(200);
    const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', result: { status: 200, data: { who: 'ann' } } });
    expect(server.asked.map((asked) => asked.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
  });

  test('trying a connection refreshes a token that is over', async () => {
    await connect();
    world.clock.skewMs = 700_000;
    const tried = await organisation.ask('POST', `/owner/connections/${connection}/test`);
    expect([tried.body.ok, tried.body.upstream_status], tried.text).toEqual([true, 200]);
    expect(server.asked).toHaveLength(2);
  });

  test('a secret of an owner’s own takes the place of the tokens, which are revoked', async () => {
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
  ])('a governance file that %s revokes its tokens as an owner would', async (_what, connections, bearer) => {
    await connect();
    const { length } = server.seen.filter((one) => one === 'POST /token/revocation');
    const values = {
      'env:DOCS_ID': CLIENT_ID,
      'env:DOCS_SECRET': CLIENT_SECRET,
      'env:DOCS_TOKEN': 'a-token-0123456789',
    };
    const applied = await govern({ connections }, values);
    expect(applied.status, applied.text).toBe(200);
    expect(server.seen.filter((one) => one === 'POST /token/revocation')).toHaveLength(length + 2);
    const { status } = await agent.act(READ);
    if (bearer === undefined) expect(status).toBe(412);
    else expect(server.bearers.at(-1)).toBe(bearer);
    // Applied again it changes nothing, and there is nothing to revoke.
    expect((await govern({ connections }, values)).body.changes).toEqual([]);
    expect(server.seen.filter((one) => one === 'POST /token/revocation')).toHaveLength(length + 2);
  });

  test('what connecting and disconnecting did is on record, without a receipt and without a token', async () => {
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

  test('a built-in platform needs no more than a client: where to go is known without asking anybody', async () => {
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
    // Whoever gives no secret to a platform that wants one is told.
    await organisation.platform({ id: 'plain', secret: null });
    const refused = await organisation.ask('POST', '/owner/connections', { platform: 'plain', label: 'plain' });
    expectEnvelope(refused, 400, 'invalid_request');
  });

  test('a call with a token that is good asks the store nothing that one with a secret does not', async () => {
    await organisation.platform({ id: 'plain', manifest: { ...manifest(), auth: { type: 'bearer' } } });
    const other = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { plain: { scopeList: ['docs:read'] } },
    });
    await connect();
    const opened = world.running.broker.store;
    /** The fewest of a few tries: now and then the broker asks something beside the calls. */
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

  test('50 calls at once with a token that is over: one refresh', async () => {
    await connect();
    world.clock.skewMs = 700_000;
    server.slowMs = 150;
    const answers = await Promise.all(Array.from({ length: 50 }, () => agent.act(READ)));
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(server.asked.map((asked) => asked.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
  });

  test('less was granted than a call needs: 409 needs_consent, an access request, and where to connect', async () => {
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
    // The manifest asks for docs.read alone; what the agent waits for is asked for beside it.
    const { body } = await start(browserHere());
    expect(new URL(body.authorization_url).searchParams.get('scope')).toBe('openid email docs.read docs.write');
    await connect();
    expect(await answered()).toBe('approved');
    expect((await agent.act(write)).status).toBe(200);
    const { access_requests: requests } = (await organisation.ask('GET', '/owner/access-requests?status=approved'))
      .body;
    expect(requests[0]).toMatchObject({ scope: 'docs:write', granted: [] });
    // Connecting again does not lose it, disconnecting does.
    const asked = async () =>
      new URL((await start(browserHere())).body.authorization_url).searchParams.get('scope')!.split(' ');
    expect(await asked()).toContain('docs.write');
    await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
    expect(await asked()).toEqual(['openid', 'email', 'docs.read']);
  });

  test('disconnecting revokes at the server and forgets here', async () => {
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
