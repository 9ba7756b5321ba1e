/** Several authorization servers, one of which tries to obtain the code of another (mix-up attack, RFC 9700 section 4.4). */
import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { browserOf, outlive, pressConnect } from '../world/browser/connecting.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { type LyingServer, startLyingServer } from '../world/servers/lying-authorization-server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { type Organisation, shared, startWorld } from '../world/world.ts';

const MINUTE_MS = 60_000;
const SHARED = '/console/connections/callback';
const OWN = '/console/connected';
/** The redirect URIs of connections in earlier releases: below the shared one. */
const EARLIER = SHARED;
const JSON_TYPE = { 'content-type': 'application/json' };

describe.each(ONE_STORE)(`authorization servers side by side on %s${postgresNote}`, (store) => {
  let organisation: Organisation;
  const honest = shared(() => startLyingServer());
  const evil = shared(() => startLyingServer());
  // Not givenWorld: the clock is not set back between the tests.
  const world = shared(() => startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: `${honest.address},${evil.address}` }));
  beforeEach(async () => {
    // Cached discovery results have expired.
    world.clock.skewMs += 11 * MINUTE_MS;
    for (const server of [honest, evil]) {
      server.beHonest();
      server.asked.length = 0;
      server.seen.length = 0;
      server.metadata = { authorization_response_iss_parameter_supported: undefined };
      server.callback = (parameters) => parameters.delete('iss');
    }
    organisation = await world.organisation();
  });

  /** Adds a platform of kind mcp that selects its authorization server itself, where clients can register. */
  async function mcpPlatform(server: LyingServer, auth: object = {}, id = 'tools'): Promise<string> {
    const resource = `${server.issuer}/mcp`;
    server.answers.set('/.well-known/oauth-protected-resource/mcp', (_request, response) =>
      response
        .writeHead(200, JSON_TYPE)
        .end(JSON.stringify({ resource, authorization_servers: [server.issuer], scopes_supported: ['items.read'] })),
    );
    server.answers.set('/register', (_request, response, body) => {
      registered.push(JSON.parse(body).redirect_uris);
      response.writeHead(201, JSON_TYPE).end(JSON.stringify({ client_id: `client-${registered.length}` }));
    });
    server.metadata = { ...server.metadata, registration_endpoint: `${server.issuer}/register` };
    const manifest = {
      kind: 'mcp',
      base_url: resource,
      auth: { type: 'oauth2', ...auth },
      scopes: { 'tools:all': ['tool *'] },
    };
    await organisation.platform({ id, manifest, secret: null });
    return await organisation.connection(id, { secret: null });
  }
  const registered: string[][] = [];
  async function restPlatform(auth: object, id = 'docs', connection?: string): Promise<string> {
    const manifest = { base_url: `${honest.issuer}/api`, auth, scopes: { 'docs:read': ['GET /items'] } };
    await organisation.platform({ id, manifest, secret: null });
    return connection ?? (await organisation.connection(id, { secret: null }));
  }
  const begin = async (connection: string, browser = browserOf(world, organisation.owner)) => {
    const begun = await pressConnect(world, browser, connection);
    return { browser, begun, url: begun.body.authorization_url as string };
  };
  /** Returns the callback URL with the server's response, without opening it. */
  async function answerTo(url: string): Promise<URL> {
    const halfway = new Browser();
    halfway.stopAt = ({ origin }) => origin === world.running.baseUrl;
    return new URL((await halfway.get(url)).url);
  }
  const redirectOf = (url: string) => new URL(url).searchParams.get('redirect_uri');
  const ownOf = (id: string) => `${world.running.baseUrl}${OWN}/${id}`;
  const found = async (connection: string) =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { id: string }) => one.id === connection,
    );
  const stateOf = async (connection: string) => (await found(connection)).state;
  const shownOf = async (connection: string) => (await found(connection)).redirect_uri;
  async function expectRefused(visit: Visit, connection: string, says: RegExp): Promise<void> {
    expect(visit.text).toMatch(says);
    expect([visit.status, honest.asked.length, evil.asked.length]).toEqual([400, 0, 0]);
    expect(await stateOf(connection)).toBe('not_connected');
  }

  test('a connection whose client the broker registers has a redirect URI of its own, and only that is registered', async () => {
    const own = await mcpPlatform(honest);
    const { browser, url } = await begin(own);
    expect(redirectOf(url)).toBe(ownOf(own));
    expect(registered.at(-1)).toEqual([redirectOf(url)]);
    expect((await browser.get(url)).text).toContain('The platform is connected.');
    expect(honest.asked[0]!.get('redirect_uri')).toBe(redirectOf(url));
    const another = await organisation.connection('tools', { secret: null, isDefault: false });
    expect(redirectOf((await begin(another)).url)).toBe(ownOf(another));
    // The first connection's registration was not replaced: its tokens can still be refreshed.
    await outlive(world, own);
    await organisation.ask('POST', `/owner/connections/${own}/test`);
    expect(honest.asked.at(-1)!.get('grant_type')).toBe('refresh_token');
    expect(await stateOf(own)).toBe('connected');
  });

  test('a callback at the redirect URI of another connection, or at the shared one, is refused', async () => {
    const own = await mcpPlatform(honest);
    const other = await restPlatform(honest.auth({ redirect_uri: 'connection' }));
    const { browser, url } = await begin(own);
    const answer = await answerTo(url);
    for (const path of [SHARED, `${OWN}/${other}`, `${OWN}/${organisation.id}`])
      await expectRefused(
        await browser.get(`${world.running.baseUrl}${path}${answer.search}`),
        own,
        /No OAuth flow that was started/,
      );
    expect((await browser.get(answer.href)).text).toContain('The platform is connected.');
  });

  test('a client registered by hand has the organisation’s redirect URI, which its page shows, unless the manifest names another', async () => {
    const connection = await restPlatform(honest.auth());
    expect((await organisation.ask('GET', '/owner/me')).body.redirect_uri).toBe(ownOf(organisation.id));
    expect(redirectOf((await begin(connection)).url)).toBe(ownOf(organisation.id));
    expect(await shownOf(connection)).toBe(ownOf(organisation.id));
    for (const [choice, id] of [
      ['organisation', organisation.id],
      ['connection', connection],
    ] as const) {
      await restPlatform(honest.auth({ redirect_uri: choice }), 'docs', connection);
      const { browser, url } = await begin(connection);
      expect(redirectOf(url)).toBe(ownOf(id));
      expect(await shownOf(connection)).toBe(ownOf(id));
      expect((await browser.get(url)).text).toContain('The platform is connected.');
    }
  });

  test('the shared redirect URI is used for built-in platforms, and for brokers with one organisation', async () => {
    const others = await world.organisation();
    const connection = await restPlatform(honest.auth({ redirect_uri: 'shared' }));
    const { begun } = await begin(connection);
    expectEnvelope(begun, 409, 'conflict');
    expect(begun.body.detail).toContain(ownOf(organisation.id));

    const entry = { use: 'github', auth: { type: 'oauth2', client_id: 'by-hand' } };
    for (const [auth, uri] of [
      [{}, world.running.baseUrl + SHARED],
      [{ redirect_uri: 'organisation' }, ownOf(others.id)],
      // An entry that names a server counts as another platform, whatever its id.
      [{ authorization_endpoint: `${evil.issuer}/auth`, token_endpoint: `${evil.issuer}/token` }, ownOf(others.id)],
      [{ issuer: evil.issuer }, ownOf(others.id)],
    ] as const) {
      const id = `gh-${randomUUID().slice(0, 8)}`;
      const body = { platform: id, entry: { ...entry, auth: { ...entry.auth, ...auth } } };
      await expectStatus(201, others.ask('POST', '/owner/platforms', body));
      const one = await others.connection(id, { secret: null });
      const { begun } = await begin(one, browserOf(world, others.owner));
      expect(redirectOf(begun.body.authorization_url), begun.text).toBe(uri);
    }
    const moved = {
      ...entry,
      oauth: { authorization_endpoint: `${evil.issuer}/auth`, token_endpoint: `${evil.issuer}/token` },
    };
    expect((await others.ask('POST', '/owner/platforms', { platform: 'moved', entry: moved })).status).toBe(201);
    const { begun: other } = await begin(
      await others.connection('moved', { secret: null }),
      browserOf(world, others.owner),
    );
    expect(redirectOf(other.body.authorization_url), other.text).toBe(ownOf(others.id));

    const alone = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: `${honest.address},${evil.address}` });
    const only = await alone.organisation();
    const manifest = {
      base_url: `${honest.issuer}/api`,
      auth: honest.auth({ redirect_uri: 'shared' }),
      scopes: { 'docs:read': ['GET /items'] },
    };
    await only.platform({ id: 'docs', manifest, secret: null });
    const browser = browserOf(alone, only.owner);
    const { body } = await pressConnect(alone, browser, await only.connection('docs', { secret: null }));
    expect(redirectOf(body.authorization_url)).toBe(alone.running.baseUrl + SHARED);
    expect((await browser.get(body.authorization_url)).text).toContain('The platform is connected.');
  });

  test.each(['issuer', 'endpoints'])(
    'an organisation that configures the %s of another one’s server gets no code of it',
    async (what) => {
      const strangers = await world.organisation();
      const client = await restPlatform(honest.auth());
      const registered = [
        world.running.baseUrl + SHARED,
        ownOf(organisation.id),
        redirectOf((await begin(client)).url)!,
      ];
      const token_endpoint = `${evil.issuer}/token`;
      const auth =
        what === 'issuer'
          ? honest.auth({ token_endpoint })
          : { type: 'oauth2', client_id: 'broker', token_endpoint, authorization_endpoint: `${honest.issuer}/auth` };
      const manifest = { base_url: `${evil.issuer}/api`, auth, scopes: { 'docs:read': ['GET /items'] } };
      await strangers.platform({ id: 'docs', manifest, secret: null });
      const connection = await strangers.connection('docs', { secret: null });
      for (const uri of registered) {
        const { browser, url } = await begin(connection, browserOf(world, strangers.owner));
        expect(registered).not.toContain(redirectOf(url));
        const elsewhere = new URL(url);
        elsewhere.searchParams.set('redirect_uri', uri);
        const visit = await browser.get(elsewhere.href);
        expect([visit.status, new URL(visit.url).searchParams.has('code')]).toEqual([400, true]);
        expect(visit.text).toMatch(/No OAuth flow that was started/);
      }
      expect([honest.asked.length, evil.asked.length]).toEqual([0, 0]);
    },
  );

  test('a client at a server that the platform selected has the connection’s redirect URI, unless the manifest names the server', async () => {
    const chosen = await mcpPlatform(honest, { client_id: 'by-hand', redirect_uri: 'organisation' });
    expect(redirectOf((await begin(chosen)).url)).toBe(ownOf(chosen));
    const named = await mcpPlatform(honest, { client_id: 'by-hand', issuer: honest.issuer }, 'named');
    expect(redirectOf((await begin(named)).url)).toBe(ownOf(organisation.id));
  });

  describe('a server selected by an MCP server whose authorization endpoint is on another host', () => {
    const elsewhere = () => ({ authorization_endpoint: `${honest.issuer}/auth` });

    test('is refused with both hosts named, and the broker does not register there', async () => {
      const connection = await mcpPlatform(evil);
      evil.metadata = { ...evil.metadata, ...elsewhere() };
      const { begun } = await begin(connection);
      expectEnvelope(begun, 502, 'upstream_unreachable');
      expect(begun.body.detail).toContain(new URL(honest.issuer).host);
      expect(begun.body.detail).toContain(new URL(evil.issuer).host);
      expect(evil.seen).not.toContain('POST /register');
    });

    test('is refused with a client id in the manifest, too', async () => {
      const connection = await mcpPlatform(evil, { client_id: 'known-at-both' });
      evil.metadata = { ...evil.metadata, ...elsewhere() };
      expectEnvelope((await begin(connection)).begun, 502, 'upstream_unreachable');
    });

    test('is accepted when the manifest names the endpoint', async () => {
      const connection = await mcpPlatform(evil, elsewhere());
      const { begun, url } = await begin(connection);
      expect([begun.status, new URL(url).origin], begun.text).toEqual([200, honest.issuer]);
    });

    test('gets no code when it advertises iss, because the other host does not send its name', async () => {
      const connection = await mcpPlatform(evil);
      evil.metadata = { ...evil.metadata, ...elsewhere(), authorization_response_iss_parameter_supported: true };
      for (const iss of [undefined, honest.issuer]) {
        honest.callback = (parameters) => (iss ? parameters.set('iss', iss) : parameters.delete('iss'));
        const { browser, url } = await begin(connection);
        expect((await browser.get(url)).text).toContain('Not connected');
      }
      expect([honest.asked.length, evil.asked.length, await stateOf(connection)]).toEqual([0, 0, 'not_connected']);
    });
  });

  test.each<[string, () => object]>([
    ['server', () => evil.auth()],
    ['client', () => honest.auth({ client_id: 'another' })],
  ])('a code is not redeemed when the %s was changed during the flow', async (_what, changed) => {
    const connection = await restPlatform(honest.auth());
    const { browser, url } = await begin(connection);
    const answer = await answerTo(url);
    await restPlatform(changed(), 'docs', connection);
    await expectRefused(await browser.get(answer.href), connection, /has changed\. Connect again/);
  });

  test.each<[string, (connection: string) => { name: string; path: string }]>([
    ['for the whole platform', () => ({ name: 'registration', path: EARLIER })],
    ['with another redirect URI', (id) => ({ name: `registration:${id}`, path: `${EARLIER}/${id}` })],
  ])(
    'tokens of a client that an earlier release registered %s are refreshed and revoked as before',
    async (_how, earlier) => {
      const connection = await mcpPlatform(honest);
      const { browser, url } = await begin(connection);
      await browser.get(url);
      const { vault } = world.running.broker;
      const [row] = await world.db
        .selectFrom('platform_secrets')
        .selectAll()
        .where('organisation_id', '=', organisation.id)
        .execute();
      const place = { table: 'platform_secrets' as const, organisationId: organisation.id, rowId: row!.id };
      const former = { ...JSON.parse(vault.open(place, row!.value).toString('utf8')) };
      const { name, path } = earlier(connection);
      former.redirect_uri = world.running.baseUrl + path;
      await world.db
        .updateTable('platform_secrets')
        .set({ name, value: vault.seal(place, JSON.stringify(former)) })
        .where('id', '=', row!.id)
        .execute();
      await outlive(world, connection);
      // Beginning to connect again without finishing changes nothing.
      const again = await begin(connection);
      expect(redirectOf(again.url)).toBe(ownOf(connection));
      await organisation.ask('POST', `/owner/connections/${connection}/test`);
      expect([honest.asked.at(-1)!.get('grant_type'), honest.asked.at(-1)!.get('client_id')]).toEqual([
        'refresh_token',
        former.client_id,
      ]);
      expect(await stateOf(connection)).toBe('connected');
      const ended = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
      expect(ended.body.revoked, ended.text).toBe(true);
    },
  );

  test.each([
    ['does not answer', undefined],
    ['names another authorization server by now', () => evil.issuer],
  ])('tokens for an MCP server that %s are revoked at the server that issued them', async (_what, named) => {
    const connection = await mcpPlatform(honest);
    const { browser, url } = await begin(connection);
    await browser.get(url);
    expect(await stateOf(connection)).toBe('connected');
    world.clock.skewMs += 11 * MINUTE_MS;
    honest.answers.set('/.well-known/oauth-protected-resource/mcp', (_request, response) => {
      if (!named) return void response.socket!.destroy();
      const document = { resource: `${honest.issuer}/mcp`, authorization_servers: [named()] };
      return response.writeHead(200, JSON_TYPE).end(JSON.stringify(document));
    });
    const ended = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
    expect([ended.body.revoked, evil.seen], ended.text).toEqual([true, []]);
    expect(honest.seen).toContain('POST /revoke');
  });

  test('removing a connection deletes its registration', async () => {
    const connection = await mcpPlatform(honest);
    await begin(connection);
    const left = async () =>
      (
        await world.db
          .selectFrom('platform_secrets')
          .selectAll()
          .where('organisation_id', '=', organisation.id)
          .execute()
      ).length;
    expect(await left()).toBe(1);
    expect((await organisation.ask('DELETE', `/owner/connections/${connection}`)).status).toBe(200);
    expect(await left()).toBe(0);
  });
});
