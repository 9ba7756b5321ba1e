/** Several authorization servers, one of which wants the code of another (RFC 9700 section 4.4): it gets nothing. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Browser, type Visit } from '../world/browser.ts';
import { browserOf, outlive, pressConnect } from '../world/connecting.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { type LyingServer, startLyingServer } from '../world/lying-authorization-server.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const MINUTE_MS = 60_000;
const SHARED = '/console/connections/callback';
const JSON_TYPE = { 'content-type': 'application/json' };

describe.each(STORES)(`authorization servers side by side on %s${postgresNote}`, (store) => {
  let honest: LyingServer;
  let evil: LyingServer;
  let world: World;
  let organisation: Organisation;
  beforeAll(async () => {
    honest = await startLyingServer();
    evil = await startLyingServer();
    world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: `${honest.address},${evil.address}` });
  });
  beforeEach(async () => {
    // What was discovered is asked for again.
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

  /** A platform of kind mcp that chooses its authorization server itself, and lets clients register there. */
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
  /** The address at which the answer of the server comes back, not opened yet. */
  async function answerTo(url: string): Promise<URL> {
    const halfway = new Browser();
    halfway.stopAt = ({ origin }) => origin === world.running.baseUrl;
    return new URL((await halfway.get(url)).url);
  }
  const redirectOf = (url: string) => new URL(url).searchParams.get('redirect_uri');
  const stateOf = async (connection: string) =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { id: string }) => one.id === connection,
    ).state;
  async function expectRefused(visit: Visit, connection: string, says: RegExp): Promise<void> {
    expect(visit.text).toMatch(says);
    expect([visit.status, honest.asked.length, evil.asked.length]).toEqual([400, 0, 0]);
    expect(await stateOf(connection)).toBe('not_connected');
  }

  test('a connection whose client the broker registers has a redirect URI of its own, and is registered with exactly that', async () => {
    const own = await mcpPlatform(honest);
    const { browser, url } = await begin(own);
    expect(redirectOf(url)).toBe(`${world.running.baseUrl}${SHARED}/${own}`);
    expect(registered.at(-1)).toEqual([redirectOf(url)]);
    expect((await browser.get(url)).text).toContain('The platform is connected.');
    expect(honest.asked[0]!.get('redirect_uri')).toBe(redirectOf(url));
    const another = await organisation.connection('tools', { secret: null, isDefault: false });
    expect(redirectOf((await begin(another)).url)).toBe(`${world.running.baseUrl}${SHARED}/${another}`);
    // Its registration did not take the place of the first one's: the tokens of that can still be refreshed.
    await outlive(world, own);
    await organisation.ask('POST', `/owner/connections/${own}/test`);
    expect(honest.asked.at(-1)!.get('grant_type')).toBe('refresh_token');
    expect(await stateOf(own)).toBe('connected');
  });

  test('an answer that comes in at the redirect URI of another connection, or at the shared one, is not taken', async () => {
    const own = await mcpPlatform(honest);
    const other = await restPlatform(honest.auth({ redirect_uri: 'connection' }));
    const { browser, url } = await begin(own);
    const answer = await answerTo(url);
    for (const path of [SHARED, `${SHARED}/${other}`])
      await expectRefused(
        await browser.get(`${world.running.baseUrl}${path}${answer.search}`),
        own,
        /Nothing that was begun/,
      );
    expect((await browser.get(answer.href)).text).toContain('The platform is connected.');
  });

  test('a client that somebody registered keeps the shared redirect URI, unless the manifest says that it has one for each connection', async () => {
    const connection = await restPlatform(honest.auth());
    expect(redirectOf((await begin(connection)).url)).toBe(world.running.baseUrl + SHARED);
    await restPlatform(honest.auth({ redirect_uri: 'connection' }), 'docs', connection);
    const { browser, url } = await begin(connection);
    expect(redirectOf(url)).toBe(`${world.running.baseUrl}${SHARED}/${connection}`);
    expect((await browser.get(url)).text).toContain('The platform is connected.');
  });

  test('a client of a server that the platform itself chose never uses the shared redirect URI', async () => {
    const chosen = await mcpPlatform(honest, { client_id: 'by-hand' });
    expect(redirectOf((await begin(chosen)).url)).toBe(`${world.running.baseUrl}${SHARED}/${chosen}`);
    const named = await mcpPlatform(honest, { client_id: 'by-hand', issuer: honest.issuer }, 'named');
    expect(redirectOf((await begin(named)).url)).toBe(world.running.baseUrl + SHARED);
  });

  describe('a server that an MCP server chose, and that sends people to another one,', () => {
    const elsewhere = () => ({ authorization_endpoint: `${honest.issuer}/auth` });

    test('is refused, with both hosts named, and gets no client', async () => {
      const connection = await mcpPlatform(evil);
      evil.metadata = { ...evil.metadata, ...elsewhere() };
      const { begun } = await begin(connection);
      expectEnvelope(begun, 502, 'upstream_unreachable');
      expect(begun.body.detail).toContain(new URL(honest.issuer).host);
      expect(begun.body.detail).toContain(new URL(evil.issuer).host);
      expect(evil.seen).not.toContain('POST /register');
    });

    test('is refused with a client id of the manifest, too', async () => {
      const connection = await mcpPlatform(evil, { client_id: 'known-at-both' });
      evil.metadata = { ...evil.metadata, ...elsewhere() };
      expectEnvelope((await begin(connection)).begun, 502, 'upstream_unreachable');
    });

    test('is taken when the manifest names the endpoint', async () => {
      const connection = await mcpPlatform(evil, elsewhere());
      const { begun, url } = await begin(connection);
      expect([begun.status, new URL(url).origin], begun.text).toEqual([200, honest.issuer]);
    });

    test('gets no code when it announces iss, because the other one does not say that it is this one', async () => {
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
  ])('a code is redeemed for no other %s than the flow began with', async (_what, changed) => {
    const connection = await restPlatform(honest.auth());
    const { browser, url } = await begin(connection);
    const answer = await answerTo(url);
    await restPlatform(changed(), 'docs', connection);
    await expectRefused(await browser.get(answer.href), connection, /has changed\. Connect again/);
  });

  test('tokens of a client that an earlier release registered for the whole platform are refreshed and revoked as before', async () => {
    const connection = await mcpPlatform(honest);
    const { browser, url } = await begin(connection);
    await browser.get(url);
    const { db } = world.running.broker.store;
    const { vault } = world.running.broker;
    const [row] = await db
      .selectFrom('platform_secrets')
      .selectAll()
      .where('organisation_id', '=', organisation.id)
      .execute();
    const place = { table: 'platform_secrets' as const, organisationId: organisation.id, rowId: row!.id };
    const former = { ...JSON.parse(vault.open(place, row!.value).toString('utf8')) };
    former.redirect_uri = world.running.baseUrl + SHARED;
    await db
      .updateTable('platform_secrets')
      .set({ name: 'registration', value: vault.seal(place, JSON.stringify(former)) })
      .where('id', '=', row!.id)
      .execute();
    await outlive(world, connection);
    // Whoever begins to connect again, and does not finish, takes nothing away.
    const again = await begin(connection);
    expect(redirectOf(again.url)).toBe(`${world.running.baseUrl}${SHARED}/${connection}`);
    await organisation.ask('POST', `/owner/connections/${connection}/test`);
    expect([honest.asked.at(-1)!.get('grant_type'), honest.asked.at(-1)!.get('client_id')]).toEqual([
      'refresh_token',
      former.client_id,
    ]);
    expect(await stateOf(connection)).toBe('connected');
    const ended = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
    expect(ended.body.revoked, ended.text).toBe(true);
  });

  test('a connection that is removed takes its registration along', async () => {
    const connection = await mcpPlatform(honest);
    await begin(connection);
    const left = async () =>
      (
        await world.running.broker.store.db
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
