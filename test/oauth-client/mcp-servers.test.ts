/** MCP servers as platforms: they name their authorization server (RFC 9728), and the broker registers itself there (RFC 7591). */
import type { ServerResponse } from 'node:http';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { callOf } from '../upstream-mcp/connected.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { browserOf, connectAtOnce, outlive, pressConnect } from '../world/browser/connecting.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { startAuthorizationServer } from '../world/servers/authorization-server.ts';
import { startLyingServer } from '../world/servers/lying-authorization-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { ALLOW_ALL, type Organisation, shared, startWorld } from '../world/world.ts';

describe.each(ONE_STORE)(`connecting MCP servers on %s${postgresNote}`, (store) => {
  let organisation: Organisation;
  let connection: string;
  const server = shared(() => startAuthorizationServer());
  const lying = shared(() => startLyingServer());
  // Not givenWorld: the clock is not set back between the tests.
  const world = shared(() =>
    startWorld(store, {
      AGENT_BROKER_ALLOW_PRIVATE: `${server.address},${lying.address},127.0.0.1:1`,
    }),
  );
  beforeAll(async () => {
    server.serve(world.running.baseUrl);
  });
  beforeEach(async () => {
    // Cached discovery results have expired.
    world.clock.skewMs += 11 * MINUTE_MS;
    lying.beHonest();
    lying.asked.length = 0;
    lying.seen.length = 0;
    server.seen.length = 0;
    server.asked.length = 0;
    server.mcp.challenge = 'Bearer';
    server.mcp.documents.clear();
    organisation = await world.organisation();
    connection = await platform(`${server.issuer}/mcp`);
  });

  const document = (more: object = {}) => ({
    resource: `${server.issuer}/mcp`,
    authorization_servers: [server.issuer],
    scopes_supported: ['openid', 'offline_access'],
    ...more,
  });
  async function platform(baseUrl: string, auth: object = {}, id = 'tools'): Promise<string> {
    const manifest = {
      kind: 'mcp',
      base_url: baseUrl,
      auth: { type: 'oauth2', ...auth },
      scopes: { 'tools:all': ['tool *'] },
    };
    await organisation.platform({ id, manifest, secret: null });
    return await organisation.connection(id, { secret: null });
  }
  const start = () => organisation.ask('POST', `/owner/connections/${connection}/oauth/start`);
  const registrations = () => server.seen.filter((one) => one === 'POST /reg').length;

  async function connect(): Promise<void> {
    const browser = browserOf(world, organisation.owner);
    const begun = await expectStatus(200, pressConnect(world, browser, connection));
    const visit = await server.consent(browser, 'ann', begun.body.authorization_url);
    expect([visit.status, visit.text.includes('The platform is connected.')], visit.text).toEqual([200, true]);
  }

  test.each<[string, () => void]>([
    [
      'at the address that its 401 names',
      () => {
        server.mcp.challenge = `Bearer error="invalid_token", resource_metadata="${server.issuer}/about/mcp"`;
        server.mcp.documents.set('/about/mcp', document());
      },
    ],
    [
      'at the well-known address of its path',
      () => server.mcp.documents.set('/.well-known/oauth-protected-resource/mcp', document()),
    ],
    [
      'at the well-known address of its host',
      () => server.mcp.documents.set('/.well-known/oauth-protected-resource', document({ resource: server.issuer })),
    ],
  ])('with only an address: metadata %s, registration, consent, and a token for the server', async (_name, publish) => {
    publish();
    await connect();
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    expect(connections[0]).toMatchObject({ state: 'connected', oauth: { account: 'ann' } });
    // Registered with the right metadata, and the token requested for this server only (RFC 8707).
    expect(registrations()).toBe(1);
    const [form] = server.asked;
    expect(form!.get('resource')).toMatch(new RegExp(`^${server.issuer}/?(mcp)?$`));
    // Once registered, the client id stays the same.
    await connect();
    expect(registrations()).toBe(1);
  });

  test.each<[string, string, string]>([
    ['with a slash, and its server without', '/', ''],
    ['without a slash, and its server with one', '', '/'],
  ])('an issuer that the MCP server names %s is the same server', async (_name, named, own) => {
    connection = await platform(`${lying.issuer}/mcp`, {}, 'slashed');
    const json = (value: object) => (_q: unknown, response: ServerResponse) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    const says = { resource: `${lying.issuer}/mcp`, authorization_servers: [lying.issuer + named] };
    lying.answers.set('/.well-known/oauth-protected-resource/mcp', json(says));
    lying.answers.set('/register', json({ client_id: 'one' }));
    lying.metadata = { issuer: lying.issuer + own, registration_endpoint: `${lying.issuer}/register` };
    lying.callback = (answer) => answer.set('iss', lying.issuer + own);
    await connectAtOnce(world, organisation.owner, connection);
    // Server and client are also the same at a refresh, and when the server is connected again.
    await outlive(world, connection);
    lying.answers.set('/mcp', json({ jsonrpc: '2.0' }));
    world.clock.skewMs += 11 * MINUTE_MS;
    await organisation.ask('POST', `/owner/connections/${connection}/test`);
    expect(lying.asked.map((form) => form.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
    await connectAtOnce(world, organisation.owner, connection);
    expect(lying.seen.filter((one) => one === 'POST /register')).toHaveLength(1);
    // In its responses the server accepts only its own spelling.
    lying.callback = (answer) => answer.set('iss', lying.issuer + named);
    const browser = browserOf(world, organisation.owner);
    const refused = await browser.get((await pressConnect(world, browser, connection)).body.authorization_url);
    expect([refused.status, refused.text.includes('cannot be used')], refused.text).toEqual([502, true]);
  });

  test('disconnecting deletes the registration, so that a server that has deleted it, too, can be connected again', async () => {
    server.mcp.documents.set('/.well-known/oauth-protected-resource/mcp', document());
    await connect();
    await expectStatus(200, organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`));
    await connect();
    expect(registrations()).toBe(2);
  });

  test('a refresh requests the same resource', async () => {
    server.mcp.documents.set('/.well-known/oauth-protected-resource/mcp', document());
    await connect();
    await outlive(world, connection);
    await expectStatus(200, organisation.ask('POST', `/owner/connections/${connection}/test`));
    expect(server.asked.map((form) => [form.get('grant_type'), form.get('resource')])).toEqual([
      ['authorization_code', `${server.issuer}/mcp`],
      ['refresh_token', `${server.issuer}/mcp`],
    ]);
  });

  test('of several authorization servers, tokens stay with the one that issued them while it is named, in whichever order', async () => {
    const name = (...issuers: string[]) =>
      server.mcp.documents.set(
        '/.well-known/oauth-protected-resource/mcp',
        document({ authorization_servers: issuers }),
      );
    const refresh = async () => {
      await outlive(world, connection);
      world.clock.skewMs += 11 * MINUTE_MS;
      await organisation.ask('POST', `/owner/connections/${connection}/test`);
      const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
      return connections.find(({ id }: { id: string }) => id === connection).state;
    };
    name(server.issuer, lying.issuer);
    await connect();
    name(lying.issuer, server.issuer);
    expect(await refresh()).toBe('connected');
    expect(server.asked.map((form) => form.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
    name(lying.issuer);
    expect(await refresh()).toBe('reauth_needed');
    expect(lying.asked).toEqual([]);
    expect(server.asked).toHaveLength(2);
  });

  test('an agent calls a tool; the token is refreshed before it expires, and when the server refuses it', async () => {
    const tools = await startMcpServer();
    server.mcp.behind = tools.url;
    server.mcp.documents.set('/.well-known/oauth-protected-resource/mcp', document());
    await connect();
    const agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { tools: { scopeList: ['tools:all'] } },
    });
    const call = () => agent.act(callOf('search_issues', 'tools:all', { query: 'open' }));
    try {
      const answer = await call();
      expect([answer.status, answer.body.data?.structuredContent?.args], answer.text).toEqual([200, { query: 'open' }]);
      await outlive(world, connection);
      expect((await call()).status).toBe(200);
      expect(server.asked.map((form) => form.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
      world.clock.skewMs += MINUTE_MS;
      await server.end(server.bearers.at(-1)!);
      expect((await call()).status).toBe(200);
      expect(server.asked).toHaveLength(3);
      const called = tools.seen.filter(({ rpc }) => rpc === 'tools/call');
      expect(called).toHaveLength(3);
      // What an owner asks for gets another token, too.
      for (const path of ['/owner/platforms/tools/tools/refresh', `/owner/connections/${connection}/test`]) {
        world.clock.skewMs += MINUTE_MS;
        await server.end(server.bearers.at(-1)!);
        const asked = await organisation.ask('POST', path);
        expect([asked.status, asked.body.ok ?? true], asked.text).toEqual([200, true]);
      }
      expect(server.asked).toHaveLength(5);
    } finally {
      server.mcp.behind = undefined;
      await tools.close();
    }
  });

  describe('a scope that a tool requires beyond the granted ones', () => {
    let tools: Awaited<ReturnType<typeof startMcpServer>>;
    let agent: TestAgent;
    beforeAll(async () => {
      tools = await startMcpServer();
    });
    beforeEach(async () => {
      server.mcp.behind = tools.url;
      server.mcp.documents.set(
        '/.well-known/oauth-protected-resource/mcp',
        document({ scopes_supported: ['openid', 'offline_access', 'tools.call'] }),
      );
      await connect();
      server.mcp.wants = 'tools.admin';
      agent = await organisation.agent({ rules: ALLOW_ALL, grants: { tools: { scopeList: ['tools:all'] } } });
    });
    afterEach(() => {
      server.mcp.behind = undefined;
      server.mcp.wants = undefined;
    });
    const call = () => agent.act(callOf('search_issues', 'tools:all', { query: 'open' }));
    const requests = async () => (await organisation.ask('GET', '/owner/access-requests')).body.access_requests;
    const requestedScope = async () => {
      const browser = browserOf(world, organisation.owner);
      const begun = await pressConnect(world, browser, connection);
      return new URL(begun.body.authorization_url).searchParams.get('scope')!.split(' ').toSorted();
    };

    test('is requested from an owner, and included when they connect again', async () => {
      const refused = await call();
      expect([refused.status, refused.body], refused.text).toEqual([
        409,
        expect.objectContaining({
          error: 'needs_consent',
          scope: 'tools:all',
          consent_requested: true,
          poll_url: expect.any(String),
          message: expect.stringMatching(
            /^tools refused the call: its connection was granted less than tools:all needs\./,
          ),
        }),
      ]);
      const row = await findAuditRow(world.db, organisation.id, refused.body.audit_id);
      expect(row).toMatchObject({ result: 'errored', reason: 'needs_consent', upstream_status: 403 });
      // Further calls join the same pending request.
      expect((await call()).body.request_token).toBe(refused.body.request_token);
      expect(await requests()).toMatchObject([{ status: 'pending', reason_code: 'needs_consent', platform: 'tools' }]);
      expect(await requestedScope()).toEqual(['offline_access', 'openid', 'tools.admin', 'tools.call']);
      await connect();
      expect(await requests()).toMatchObject([{ status: 'approved' }]);
      const made = await call();
      expect([made.status, made.body.data?.structuredContent?.args], made.text).toEqual([200, { query: 'open' }]);
      // Scopes granted by then are requested again together with a new one.
      server.mcp.wants = 'tools.other';
      await call();
      expect(await requestedScope()).toEqual(['offline_access', 'openid', 'tools.admin', 'tools.call', 'tools.other']);
    });

    test('that the server never grants cannot be given by an owner: the agent gets the server’s refusal', async () => {
      server.mcp.wants = 'tools.none';
      expect((await call()).status).toBe(409);
      await connect();
      const refused = await call();
      expect([refused.status, refused.body._meta?.upstream_status, refused.body.data], refused.text).toEqual([
        200,
        403,
        { error: 'insufficient_scope' },
      ]);
      expect(await requests()).toMatchObject([{ status: 'approved' }]);
    });
  });

  test('a registration is sealed, is not part of the governance file, and stays through an apply', async () => {
    server.mcp.documents.set('/.well-known/oauth-protected-resource/mcp', document());
    await connect();
    const { text } = (await organisation.ask('GET', '/owner/governance')).body;
    expect(text).not.toContain('client_id');
    const plan = await organisation.ask('POST', '/owner/governance/plan', { text });
    expect(plan.body.changes.filter(({ kind }: { kind: string }) => kind === 'platform')).toEqual([]);
    await connect();
    expect(registrations()).toBe(1);
  });

  test('a server of revision 2025-03-26 is its own authorization server, without metadata of its own', async () => {
    server.mcp.challenge = 'Bearer error="invalid_token", scope="openid offline_access"';
    await connect();
    expect(registrations()).toBe(1);
    expect(server.asked[0]!.get('resource')).toBe(`${server.issuer}/mcp`);
    // No metadata is ever published there, so discovery succeeds again at the refresh.
    await outlive(world, connection);
    world.clock.skewMs += 11 * MINUTE_MS;
    expect((await organisation.ask('POST', `/owner/connections/${connection}/test`)).status).toBe(200);
    expect(server.asked.map((form) => form.get('grant_type'))).toEqual(['authorization_code', 'refresh_token']);
  });

  test.each<[string, object]>([
    ['another server’s name', { resource: 'https://evil.test/mcp' }],
    ['a path that it is not in', { resource: '/other' }],
    ['a path that its own only begins with', { resource: '/mc' }],
    ['no authorization server', { authorization_servers: [] }],
    ['a script for one', { authorization_servers: ['javascript:alert(1)'] }],
    ['one with a user', { authorization_servers: ['https://me@id.example'] }],
    ['one with a query', { authorization_servers: ['https://id.example/?x'] }],
    ['one that is no address', { authorization_servers: ['id.example'] }],
    ['a query in its name', { resource: '/mcp?x' }],
    ['no list', { authorization_servers: 'https://id.example' }],
  ])('metadata with %s connects nothing', async (_name, more) => {
    const { resource } = more as { resource?: string };
    const here = resource?.startsWith('/') ? { resource: server.issuer + resource } : more;
    server.mcp.documents.set('/.well-known/oauth-protected-resource/mcp', document(here));
    const refused = await start();
    expectEnvelope(refused, 502, 'upstream_unreachable');
    expect(refused.body.detail).toContain('RFC 9728');
    expect(registrations()).toBe(0);
  });

  test.each<[string, string, string]>([
    ['is down', 'http://127.0.0.1:1/mcp', 'Could not connect to the server.'],
    ['has a private address that is not allowed', 'http://127.0.0.1:9/mcp', 'AGENT_BROKER_ALLOW_PRIVATE'],
  ])(
    'a server that %s is reported as such, and not as one without an authorization server',
    async (_name, url, why) => {
      connection = await platform(url, {}, 'silent');
      const refused = await start();
      expectEnvelope(refused, 502, 'upstream_unreachable');
      expect(refused.body.detail).toContain(`${new URL(url).host} could not be asked for its authorization server. `);
      expect(refused.body.detail).toContain(why);
      expect(refused.body.detail).not.toContain('RFC 9728');
    },
  );

  test('a challenge does not lead to another host', async () => {
    server.mcp.challenge = `Bearer resource_metadata="${lying.issuer}/.well-known/oauth-protected-resource"`;
    expectEnvelope(await start(), 502, 'upstream_unreachable');
    expect(lying.seen).not.toContain('GET /.well-known/oauth-protected-resource');
  });

  describe('an authorization server that', () => {
    beforeEach(async () => {
      connection = await platform(`${server.issuer}/mcp`, { issuer: lying.issuer }, 'lied-to');
    });

    test('does not advertise PKCE is refused, and so is one without registration', async () => {
      lying.metadata = {
        code_challenge_methods_supported: undefined,
        registration_endpoint: `${lying.issuer}/register`,
      };
      lying.answers.set('/register', (_q, response) =>
        response.writeHead(201, { 'content-type': 'application/json' }).end('{"client_id":"one"}'),
      );
      expect((await start()).body.detail).toContain('PKCE');
      world.clock.skewMs += 11 * MINUTE_MS;
      lying.metadata = {};
      expect((await start()).body.detail).toContain('does not support dynamic client registration');
      world.clock.skewMs += 11 * MINUTE_MS;
      lying.metadata = { registration_endpoint: `${lying.issuer}/register` };
      expect((await start()).status).toBe(200);
    });

    test.each<[string, number, string, string]>([
      [
        'an error',
        400,
        '{"error":"invalid_redirect_uri","error_description":"CANARY"}',
        'refused to register the broker (invalid_redirect_uri, 400). It may take redirect URIs of https alone',
      ],
      ['an error of its own', 400, '{"error":"<CANARY>"}', '(an error, 400). Register the broker there'],
      ['a page for people', 403, '<p>CANARY', 'refused to register the broker (403). Register the broker there'],
      ['too many requests', 429, '{"error":"slow_down"}', 'it answered 429. Try again shortly'],
      ['a failure', 503, '<p>CANARY', 'it answered 503. Try again shortly'],
      ['a page', 200, '<p>CANARY', 'something that cannot be used'],
      ['no id', 201, '{"client_secret":"CANARY"}', 'something that cannot be used'],
      ['an id that is no text', 201, '{"client_id":{"$ne":1}}', 'something that cannot be used'],
      ['1 MB', 201, `{"client_id":"${'x'.repeat(1e6)}"}`, 'could not be reached'],
      ['a body where there is none', 205, '{"client_id":"CANARY"}', 'could not be reached'],
      ['a status that there is not', 999, '{"client_id":"CANARY"}', 'could not be reached'],
    ])('answers a registration with %s is refused', async (_name, status, body, says) => {
      lying.metadata = { registration_endpoint: `${lying.issuer}/register` };
      lying.answers.set('/register', (_q, response) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(body),
      );
      const refused = await start();
      expectEnvelope(refused, 502, 'upstream_unreachable');
      expect(refused.text).not.toContain('CANARY');
      expect(refused.body.detail).toContain(says);
    });

    test('answers a registration with null members is accepted', async () => {
      lying.metadata = { registration_endpoint: `${lying.issuer}/register` };
      const body = '{"client_id":"one","client_secret":null,"client_secret_expires_at":null,"client_name":null}';
      lying.answers.set('/register', (_q, response) =>
        response.writeHead(201, { 'content-type': 'application/json' }).end(body),
      );
      await connectAtOnce(world, organisation.owner, connection);
    });
  });

  test('other platforms need a client id, and the error says so', async () => {
    const { status, body } = await organisation.ask('POST', '/owner/governance/plan', {
      text: JSON.stringify({
        platforms: {
          crm: {
            kind: 'rest',
            base_url: 'https://crm.example',
            auth: { type: 'oauth2', issuer: 'https://id.example' },
            scopes: {},
          },
        },
      }),
    });
    expect([status, body.problems?.join()]).toEqual([
      400,
      expect.stringContaining('register the broker at the platform'),
    ]);
  });
});
